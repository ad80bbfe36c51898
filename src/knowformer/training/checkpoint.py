"""Checkpoint: one safetensors file of weights, EMA, best weights, Adam's moments and counters."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch
from torch import Tensor, nn

from knowformer.errors import BundleError
from knowformer.model.knowformer import current_name
from knowformer.storage.tensor_files import read_metadata, read_tensors, write_tensors


@dataclass
class Counters:
    """State of a run besides its tensors. All randomness is derived from the seed and these."""

    # Schedule
    step: int = 0
    """Steps done."""
    epoch: int = 0
    """Epochs begun before the current one; seeds its order. A partitioned epoch takes fewer steps
    than ``steps_per_epoch``, as facts across partitions are left out."""
    batch_in_epoch: int = 0
    epoch_in_regions: bool = True
    """Whether the current epoch trains on partitions, if the graph is partitioned at all."""
    steps_per_epoch: int = 0
    """Of the whole graph; 0 in checkpoints from before it was recorded."""
    elapsed_seconds: float = 0.0
    finished: bool = False
    stopped: str | None = None
    """Why a callback ended the run; None: none did."""
    part_step: int = 0
    """Steps before the current part: a run that is trained further has a schedule for each part."""
    part_seconds: float = 0.0
    """Seconds before its first step."""
    # Selection
    num_valid_facts: int = 0
    """Validation facts that a time budget allows; 0: as many as the settings say."""
    best_mrr: float = -1.0
    """Of the best checkpoint, which may be slightly below the record."""
    best_step: int = 0
    validated_step: int = -1
    record_mrr: float = -1.0
    """Highest validation MRR so far."""
    record_reciprocal_ranks: list[float] = field(default_factory=list[float])
    validations_since_record: int = 0
    # Recorder
    event_bytes: int = 0
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
    optimizer: torch.optim.Adam,
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
    path: Path, model: nn.Module, optimizer: torch.optim.Adam, counters: Counters
) -> dict[str, dict[str, Tensor]]:
    """Restores model, optimiser and counters in place.

    Returns:
        The further weights under their names.

    Raises:
        BundleError: the file is missing or broken.
    """
    tensors, metadata = read_tensors(path)
    stored = _parse_counters(path, metadata)
    try:
        model.load_state_dict(_under("model.", tensors))
    except RuntimeError as error:
        raise BundleError(
            f"Expected the weights of this run's settings in {path}, got others. Was config.toml "
            "edited after the run was started?"
        ) from error
    moments = {key: _under(f"adam.{key}.", tensors) for key in ("step", "exp_avg", "exp_avg_sq")}
    for name, parameter in model.named_parameters():
        state = {key: of_key[name] for key, of_key in moments.items() if name in of_key}
        if state:
            optimizer.state[parameter] = state
    for entry in fields(Counters):
        setattr(counters, entry.name, getattr(stored, entry.name))
    others = {name.split(".")[0] for name in tensors} - {"model", "adam"}
    return {other: _under(f"{other}.", tensors) for other in others}


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


def _parse_counters(path: Path, metadata: dict[str, str]) -> Counters:
    try:
        return Counters(**json.loads(metadata["counters"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"Expected a checkpoint to resume from at {path}, got: {error!r}. Start the run anew "
            "in another folder."
        ) from error


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        current_name(name.removeprefix(prefix)): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
