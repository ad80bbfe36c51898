"""Every setting of a run, described from its source: values, default and meaning."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from knowformer.errors import ConfigError
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import unknown_setting

KINDS: dict[Any, str] = {
    int: "whole number",
    float: "number",
    bool: "true or false",
    str: "text",
}

SHOWN_BELOW = 100_000  # greater bounds only keep the absurd out


@dataclass(frozen=True)
class Setting:
    """One setting."""

    name: str
    values: str
    """What it may be, in words."""
    default: Any
    meaning: str

    @property
    def table(self) -> str:
        """The table of a settings file that it stands in; empty at the top."""
        return self.name.rpartition(".")[0]

    @property
    def default_text(self) -> str:
        """The default as it is typed."""
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return "none" if self.default is None else f"{self.default}"


def describe_settings() -> list[Setting]:
    """Returns every setting: those of the model, of training, and of the run."""
    return [
        Setting(name, _values(field), field.default, " ".join((field.description or "").split()))
        for name, field in _fields(RunConfig)
    ]


def find_setting(name: str) -> Setting:
    """Returns one setting.

    Raises:
        ConfigError: there is none of that name; the message offers near spellings.
    """
    for setting in describe_settings():
        if setting.name == name:
            return setting
    raise ConfigError(unknown_setting(name))


def _fields(config: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in config.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _fields(kind, f"{name}.")
        else:
            yield prefix + name, field


def _values(field: FieldInfo) -> str:
    """Returns what a setting may be: a kind and its bounds, or words to choose from."""
    is_union = get_origin(field.annotation) in (Union, UnionType)
    kinds = get_args(field.annotation) if is_union else (field.annotation,)
    kind = next(each for each in kinds if each is not NoneType)
    if get_origin(kind) is Literal:
        *words, last = map(str, get_args(kind))
        values = f"{', '.join(words)} or {last}"
    else:
        values = " ".join([KINDS[kind], ", ".join(_bounds(field))]).strip()
    return f"{values}, or none" if NoneType in kinds else values


def _bounds(field: FieldInfo) -> Iterator[str]:
    for bound in field.metadata:
        if isinstance(bound, Ge):
            yield f">= {bound.ge:g}"
        elif isinstance(bound, Gt):
            yield f"> {bound.gt:g}"
        elif isinstance(bound, Le) and float(bound.le) < SHOWN_BELOW:  # pyright: ignore[reportArgumentType]
            yield f"<= {bound.le:g}"
        elif isinstance(bound, Lt):
            yield f"< {bound.lt:g}"
