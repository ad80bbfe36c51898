"""TrainingConfig, and RunConfig composing all configs; TOML in and out."""

import tomllib
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import tomli_w
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from knowformer.errors import ConfigError, suggest
from knowformer.model.config import PRESETS, ModelConfig, PresetName
from knowformer.scoring.link import LinkFunction
from knowformer.training.sampling.batches import Targets
from knowformer.training.sampling.edge_removal import HiddenEdges

LossName = Literal["cross_entropy", "binary"]
ScheduleName = Literal["cosine", "steps", "constant"]

RECOMMENDED_FILE = Path(__file__).with_name("recommended.toml")


def _zero_is_none(value: object) -> object:
    """TOML has no null: 0 is how a file says that a data set's own setting is off."""
    return None if value == 0 else value


class TrainingConfig(BaseModel):
    """Settings of training."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    targets: Targets = "some"
    """What a query asks for: all answers of (head, relation), some of them, or one fact a query."""
    hide: HiddenEdges = "facts"
    """Edges hidden from a batch: its own facts, or every link between their heads and tails."""
    region_size: Annotated[int | None, BeforeValidator(_zero_is_none)] = Field(default=None, ge=2)
    """Entities in each of the regions that a large graph is cut into, anew every epoch; a step then
    costs as much as a region. None or 0: always the whole graph."""
    whole_graph_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """With region_size, the last share of the run's work, which is on the whole graph: it differs
    from its regions in the number of neighbours and of rivals."""
    edge_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of all other edges that a batch does not see either, drawn anew for each."""
    relation_swaps: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the relations that take each other's part in a batch, drawn anew for each: those
    with few training facts learn what any relation may do."""
    loss: LossName = "cross_entropy"
    """cross_entropy over all entities, or binary against sampled negatives."""
    num_negatives: int = Field(default=256, ge=1)
    """Negatives per query of the binary loss."""
    adversarial_temperature: float = Field(default=1.0, ge=0.0)
    """Negatives are weighted by softmax(score / temperature); 0 weights them equally."""
    batch_size: int | None = Field(default=None, ge=1)
    """Queries per step; none: 16, or fewer where memory is short."""
    max_epochs: float = Field(default=20, gt=0.0)
    """Passes over the training queries, whole or in part, unless max_minutes or patience ends the
    run before."""
    max_minutes: float | None = Field(default=None, gt=0.0)
    """Wall-clock budget; the learning-rate schedule is fitted to it."""
    learning_rate: float = Field(default=5e-3, gt=0.0)
    """Adam's step size at its highest."""
    weight_decay: float = Field(default=1e-4, ge=0.0)
    """L2 penalty in Adam; biases and norms are left out."""
    schedule: ScheduleName = "cosine"
    """Learning rate: cosine to zero, steps (x0.1 at 1/2 and 3/4 of the run), or constant."""
    warmup_steps: int = Field(default=20, ge=0)
    """Steps over which the learning rate rises from zero."""
    gradient_clip: float = Field(default=1.0, gt=0.0)
    """Largest norm of the whole gradient."""
    averaging: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Decay per step of a running average of the weights, which is then what is validated and kept;
    0 keeps the weights of the last step."""
    patience: int | None = Field(default=None, ge=1)
    """Validations without a new record MRR before the run ends early; none: never."""
    validations_per_epoch: int = Field(default=1, ge=1)
    """How often an epoch is interrupted to validate, evenly over its work."""
    validation_region: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of the entities that are set apart, with their facts, as a graph of its own on which
    validation asks: how well a model does on new entities. 0 asks on the training graph."""
    validation_relations: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the frequent relations of which training sees two facts each, and for which
    validation asks: how well a model does on relations that were rare in training."""
    max_valid_facts: int = Field(default=1000, ge=1)
    """Validation facts used to choose the weights; a seeded sample if there are more."""
    checkpoint_minutes: float = Field(default=2.0, ge=0.0)
    """Least time between two checkpoints; one is also written after every validation."""

    @property
    def link(self) -> LinkFunction:
        """Returns the link function of a model that was trained with this loss."""
        return "softmax" if self.loss == "cross_entropy" else "sigmoid"

    @model_validator(mode="after")
    def _one_validation_apart(self) -> "TrainingConfig":
        if self.validation_region and self.validation_relations:
            raise ValueError(
                "training.validation_region and training.validation_relations exclude each other"
            )
        return self


class RunConfig(BaseModel):
    """A whole run: model, training, seed and threads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    seed: int = Field(default=0, ge=0)
    """Root of everything random: weights, order, negatives, dropout, noise."""
    threads: int = Field(default=0, ge=0)
    """CPU threads; 0 takes all cores. Their number changes the speed, not a bit of the result."""
    backend: str = "auto"
    """Kernels: cpu (fused, needs Numba), reference (plain torch), or auto."""


TRAINING_PRESETS: dict[PresetName, dict[str, Any]] = {
    # One fact a query, the learning rate in steps, no warm-up and no clipping to speak of.
    "released": {
        "targets": "one",
        "schedule": "steps",
        "warmup_steps": 0,
        "gradient_clip": 1e6,
    },
    "paper": {"loss": "binary", "adversarial_temperature": 0.0, "targets": "one"},
}


def build_config(
    *,
    file: Path | None = None,
    preset: PresetName | None = None,
    assignments: list[str] | None = None,
    defaults: dict[str, Any] | None = None,
) -> RunConfig:
    """Composes a run's settings; what comes later wins: defaults, preset, file, assignments.

    Args:
        file: a TOML file with tables ``model`` and ``training``.
        preset: ``released`` or ``paper``.
        assignments: ``key=value`` with dotted keys, such as ``model.hidden_dim=64``.
        defaults: nested settings that everything else overrides.

    Raises:
        ConfigError: a key or a value that cannot be; the message names it.
    """
    settings: dict[str, Any] = {}
    merge_settings(settings, defaults or {})
    if preset is not None:
        merge_settings(settings, {"model": PRESETS[preset], "training": TRAINING_PRESETS[preset]})
    if file is not None:
        merge_settings(settings, _read_toml(file))
    for assignment in assignments or []:
        merge_settings(settings, _parse_assignment(assignment))
    places = [str(file)] if file else []
    places += ["--set"] if assignments else []
    return parse_config(settings, where=" or ".join(places) or "the settings")


def parse_config(settings: dict[str, Any], *, where: str) -> RunConfig:
    """Validates nested settings.

    Raises:
        ConfigError: names the key, what was expected, what was found and where.
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
    """Returns nested settings that suit a data set of the catalogue better than the defaults."""
    return deepcopy(_recommended().get(dataset or "", {}))


def merge_settings(into: dict[str, Any], more: dict[str, Any]) -> None:
    """Puts nested settings over others, table by table."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.setdefault(key, {}), dict):
            merge_settings(into[key], cast("dict[str, Any]", value))
        else:
            into[key] = value


@cache
def _recommended() -> dict[str, dict[str, Any]]:
    return _read_toml(RECOMMENDED_FILE)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"Expected a configuration file at {path}, found none.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"Expected a TOML file at {path}, got: {error}.") from error


def _parse_assignment(assignment: str) -> dict[str, Any]:
    key, equals, value = assignment.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"Expected key=value, such as model.hidden_dim=64, got {assignment!r}.")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()  # a bare word is a string: training.loss=binary
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    return parsed


def _explain(error: ValidationError, where: str) -> str:
    """One sentence for the first thing that is wrong."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _known_keys()
        hint = suggest(key, known) or f" Known keys: {', '.join(known)}."
        return f"Expected a setting that exists, got {key!r} in {where}.{hint}"
    if first["type"] == "value_error":
        return f"Impossible settings in {where}: {first.get('ctx', {}).get('error')}."
    wanted = first["msg"].removeprefix("Input should be ")
    return f"Expected {key} to be {wanted}, got {first['input']!r} in {where}."


def _known_keys() -> list[str]:
    keys: list[str] = []
    for name, field in RunConfig.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys.extend(f"{name}.{inner}" for inner in kind.model_fields)
        else:
            keys.append(name)
    return keys
