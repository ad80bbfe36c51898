"""Settings of a run: TOML files, presets, dotted names, recommendations."""

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, cast

import tomli_w
from pydantic import ValidationError

from knowformer.choices import PresetName
from knowformer.errors import ConfigError, suggest
from knowformer.model.config import PRESETS
from knowformer.storage.plain_files import read_plain
from knowformer.training.config import RunConfig

MOST_BYTES = 2**20  # of a file of settings
DEEPEST = 4  # levels of nested settings, where two are in use

RECOMMENDED_FILE = Path(__file__).with_name("recommended.toml")
RELEASED_FILE = Path(__file__).with_name("released.toml")

TRAINING_PRESETS: dict[PresetName, dict[str, Any]] = {
    # What the commands of the authors' README have in common; RELEASED_FILE has what differs.
    "released": {
        "targets": "one",
        "hide": "facts",
        "loss": "cross_entropy",
        "adversarial_temperature": 1.0,
        "max_epochs": 10.0,  # 20 of theirs, which ask each fact in one direction
        "validations_per_epoch": 2,
        "learning_rate": 5e-3,
        "weight_decay": 1e-4,
        "schedule": "steps",
        "warmup_steps": 0,
        "gradient_clip": 1e6,  # none to speak of
    },
    "paper": {"loss": "binary", "adversarial_temperature": 0.0, "targets": "one"},
}


def build_config(
    *,
    file: Path | None = None,
    preset: PresetName | None = None,
    dataset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    assignments: list[str] | None = None,
    defaults: dict[str, Any] | None = None,
) -> RunConfig:
    """Composes a run's settings; later sources win: defaults, preset, file, settings, assignments.

    Args:
        file: a TOML file with tables ``model`` and ``training``.
        preset: ``released`` or ``paper``.
        dataset: a name of the catalogue, for what a preset says of that data set.
        settings: values by dotted key, such as ``{"model.hidden_dim": 64}``.
        assignments: the same as text, ``model.hidden_dim=64``.
        defaults: nested settings that everything else overrides.

    Raises:
        ConfigError: an unknown key or an invalid value; the message names it.
    """
    composed: dict[str, Any] = {}
    merge_settings(composed, defaults or {})
    if preset is not None:
        merge_settings(composed, preset_settings(preset, dataset))
    if file is not None:
        merge_settings(composed, _read_toml(file))
    for key, value in (settings or {}).items():
        merge_settings(composed, _nested(key, value))
    for assignment in assignments or []:
        merge_settings(composed, _parse_assignment(assignment))
    places = [str(file)] if file else []
    places += ["`settings`"] if settings else []
    places += ["`assignments`"] if assignments else []
    return parse_config(composed, where=" or ".join(places) or "the settings")


def parse_config(settings: dict[str, Any], *, where: str) -> RunConfig:
    """Validates nested settings.

    Raises:
        ConfigError: names the key, the expected and the given value, and where it was given.
    """
    try:
        return RunConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(_explain(error, where)) from None


def to_toml(config: RunConfig) -> str:
    """Returns the settings as TOML; settings that are off (None) are left out."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def flat_settings(config: RunConfig) -> dict[str, Any]:
    """Returns every setting under its dotted key, such as ``model.hidden_dim``."""
    flat: dict[str, Any] = {}
    for name, value in config.model_dump(mode="json").items():
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            flat |= {f"{name}.{key}": setting for key, setting in table.items()}
        else:
            flat[name] = value
    return flat


def recommended_settings(dataset: str | None) -> dict[str, Any]:
    """Returns the nested settings recommended for a data set of the catalogue."""
    return deepcopy(_recommended().get(dataset or "", {}))


def preset_settings(preset: PresetName, dataset: str | None) -> dict[str, Any]:
    """Returns the nested settings of a preset, with those for a data set of the catalogue."""
    settings: dict[str, Any] = {
        "model": dict(PRESETS[preset]),
        "training": dict(TRAINING_PRESETS[preset]),
    }
    if preset == "released":
        merge_settings(settings, deepcopy(_released().get(dataset or "", {})))
    return settings


def merge_settings(into: dict[str, Any], more: dict[str, Any]) -> None:
    """Overrides nested settings with others, in place."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.setdefault(key, {}), dict):
            merge_settings(into[key], cast("dict[str, Any]", value))
        else:
            into[key] = value


@cache
def _recommended() -> dict[str, dict[str, Any]]:
    return _read_toml(RECOMMENDED_FILE)


@cache
def _released() -> dict[str, dict[str, Any]]:
    return _read_toml(RELEASED_FILE)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = read_plain(path, most=MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"Expected a configuration file at {path}, found none.") from None
    except OSError as error:
        raise ConfigError(f"Expected a TOML file at {path}, got '{error.strerror}'.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"Expected a TOML file at {path}, got: {error}.") from error
    return parse_toml(text, where=f"a TOML file at {path}")


def parse_toml(text: str, *, where: str) -> dict[str, Any]:
    """Parses settings.

    Raises:
        ConfigError: the text is no TOML, or nested beyond what settings are.
    """
    try:
        settings = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: no TOML, or a number too long
        raise ConfigError(f"Expected {where}, got: {error}.") from error
    level: list[Any] = [settings]
    for _ in range(DEEPEST):
        level = [v for each in level for v in (each.values() if isinstance(each, dict) else each)]
        level = [each for each in level if isinstance(each, dict | list)]
    if level:
        raise ConfigError(f"Expected {where}, got settings nested deeper than {DEEPEST} levels.")
    return settings


def _parse_assignment(assignment: str) -> dict[str, Any]:
    key, equals, value = assignment.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"Expected key=value, such as model.hidden_dim=64, got {assignment!r}.")
    try:
        parsed: Any = parse_toml(f"value = {value}", where="a value")["value"]
    except ConfigError:
        parsed = value.strip()  # a bare word is a string: training.loss=binary
    return _nested(key.strip(), parsed)


def _nested(key: str, value: Any) -> dict[str, Any]:
    if key.count(".") >= DEEPEST:
        raise ConfigError(unknown_setting(key))
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def _explain(error: ValidationError, where: str) -> str:
    """Returns one sentence about the first error."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return unknown_setting(key, where=f" in {where}")
    if first["type"] == "value_error":
        return f"Impossible settings in {where}: {first.get('ctx', {}).get('error')}."
    wanted = first["msg"].removeprefix("Input should be ")
    return f"Expected {key} to be {wanted}, got {first['input']!r} in {where}."


def unknown_setting(key: str, *, where: str = "") -> str:
    """Returns one sentence about a setting that does not exist, with near spellings."""
    known = flat_settings(RunConfig())
    hint = suggest(key, known) or f" Known keys: {', '.join(known)}."
    return f"Expected a setting that exists, got {key!r}{where}.{hint}"
