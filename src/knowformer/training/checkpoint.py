"""Checkpoint: one safetensors file of weights, EMA, best weights, Adam's moments and counters."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor, nn

from knowformer.errors import BundleError
from knowformer.model.knowformer import current_name
from knowformer.storage.tensor_files import read_metadata, read_tensors, write_tensors
from knowformer.training.optimizer import Adam

Count = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0.0, le=1e12)]
Mrr = Annotated[float, Field(ge=-1.0, le=1.0)]


@dataclass
class Counters:
    """State of a run besides its tensors. All randomness is derived from the seed and these."""

    # They come back out of a file: pydantic checks them then.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False
    )

    # Schedule
    step: Count = 0
    """Steps done."""
    epoch: Count = 0
    """Epochs begun before the current one; seeds its order. A partitioned epoch takes fewer steps
    than ``steps_per_epoch``, as facts across partitions are left out."""
    batch_in_epoch: Count = 0
    epoch_in_regions: bool = True
    """Whether the current epoch trains on partitions, if the graph is partitioned at all."""
    steps_per_epoch: Count = 0
    """Of the whole graph; 0 in checkpoints from before it was recorded."""
    elapsed_seconds: Seconds = 0.0
    finished: bool = False
    stopped: str | None = None
    """Why a callback ended the run; None: none did."""
    part_step: Count = 0
    """Steps before the current part: a run that is trained further has a schedule for each part."""
    part_seconds: Seconds = 0.0
    """Seconds before its first step."""
    # Selection
    num_valid_facts: Count = 0
    """Validation facts that a time budget allows; 0: as many as the settings say."""
    best_mrr: Mrr = -1.0
    """Of the best checkpoint, which may be slightly below the record."""
    best_step: Count = 0
    validated_step: Annotated[int, Field(ge=-1, le=2**53)] = -1
    record_mrr: Mrr = -1.0
    """Of the record: the highest validation MRR so far, or that of the highest AUROC."""
    record_reciprocal_ranks: list[Mrr] = field(default_factory=list[float])
    record_separations: list[Mrr] = field(default_factory=list[float])
    """See ``Selection.add``; empty where MRR selects the weights."""
    validations_since_record: Count = 0
    # Recorder
    event_bytes: Count = 0
    """Length of events.jsonl."""
    recent_losses: list[float] = field(default_factory=list[float])
    """Of the steps since the last training event."""

    @property
    def epochs_done(self) -> float:
        """Epochs done, counted in steps; fractional."""
        if not self.steps_per_epoch:
            return float(self.epoch)
        return self.step / self.steps_per_epoch

    def begin_part(self) -> None:
        """Lets a finished run be trained further: limits, schedule and patience start here."""
        self.finished, self.stopped = False, None
        self.part_step, self.part_seconds = self.step, self.elapsed_seconds
        self.validations_since_record = 0


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: Adam,
    others: Mapping[str, Mapping[str, Tensor]],
    counters: Counters,
) -> None:
    """Writes a checkpoint atomically: after ``kill -9`` the file is the old or the new one.

    Args:
        path: the file.
        model: gives the weights.
        optimizer: gives their moments.
        others: further weights of the same model under their names, such as ``best``.
        counters: go into the header.
    """
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for other, weights in others.items():
        tensors |= {f"{other}.{name}": value for name, value in weights.items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"adam.{key}.{name}"] = value
    write_tensors(path, tensors, {"counters": json.dumps(asdict(counters))})


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: Adam, counters: Counters
) -> dict[str, dict[str, Tensor]]:
    """Restores model, optimiser and counters in place.

    Returns:
        The further weights under their names.

    Raises:
        BundleError: the file is missing or broken.
    """
    tensors, metadata = read_tensors(path)
    stored = _parse_counters(path, metadata)
    moments = {key: _under(f"adam.{key}.", tensors) for key in ("step", "exp_avg", "exp_avg_sq")}
    others = {name.split(".")[0] for name in tensors} - {"model", "adam"}
    weights = {name: _under(f"{name}.", tensors) for name in ("model", *sorted(others))}
    _check(path, model, weights, moments)
    model.load_state_dict(weights.pop("model"))
    for name, parameter in model.named_parameters():
        state = {key: of_key[name] for key, of_key in moments.items() if name in of_key}
        if state:
            optimizer.state[parameter] = state
    for entry in fields(Counters):
        setattr(counters, entry.name, getattr(stored, entry.name))
    return weights


def read_counters(path: Path) -> Counters:
    """Reads the counters without the weights.

    Raises:
        BundleError: the file is missing or broken.
    """
    return _parse_counters(path, read_metadata(path))


def write_counters(path: Path, counters: Counters) -> None:
    """Replaces the counters of a checkpoint, atomically."""
    tensors, metadata = read_tensors(path)
    write_tensors(path, tensors, metadata | {"counters": json.dumps(asdict(counters))})


@cache
def _counters() -> Any:
    return TypeAdapter(Counters)


def _parse_counters(path: Path, metadata: dict[str, str]) -> Counters:
    anew = "Start the run anew in another folder."
    if "counters" not in metadata:
        raise BundleError(
            f"Expected a checkpoint to resume from at {path}, got one without counters. {anew}"
        )
    try:
        return _counters().validate_json(metadata["counters"])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise BundleError(
            f"Expected a checkpoint to resume from at {path}, got counters with the fault "
            f"'{first['msg']}' at {where}. {anew}"
        ) from None


def _check(
    path: Path,
    model: nn.Module,
    weights: Mapping[str, Mapping[str, Tensor]],
    moments: Mapping[str, Mapping[str, Tensor]],
) -> None:
    """Checks that all tensors are of this model: its names, types and sizes, finite numbers."""
    wanted = {name: (w.dtype, w.shape) for name, w in model.state_dict().items()}
    for other, of_other in weights.items():
        found = {name: (w.dtype, w.shape) for name, w in of_other.items()}
        if found != wanted and (found or other == "model"):
            raise BundleError(
                f"Expected the weights of this run's settings in {path}, got others. Was "
                "config.toml edited after the run was started?"
            )
    for key, of_key in moments.items():
        for name, moment in of_key.items():
            dtype, shape = wanted.get(name, (None, None))
            if moment.dtype != dtype or moment.shape != (() if key == "step" else shape):
                raise BundleError(
                    f"Expected Adam's moments for this run's settings in {path}, got others under "
                    f"{name!r}. Start the run anew in another folder."
                )
    for of_any in (*weights.values(), *moments.values()):
        if not all(bool(tensor.isfinite().all()) for tensor in of_any.values()):
            raise BundleError(
                f"Expected finite numbers in {path}, got NaN or infinity. The file is damaged; "
                "copy it again, or start the run anew in another folder."
            )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        current_name(name.removeprefix(prefix)): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
