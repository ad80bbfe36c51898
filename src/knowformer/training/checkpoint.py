"""A checkpoint: one safetensors file of weights (with average and best), moments and counters."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from knowformer.errors import BundleError
from knowformer.storage.tensor_files import read_metadata, read_tensors, write_tensors


@dataclass
class Counters:
    """Where a run stands. Everything random is derived from the seed and these."""

    step: int = 0
    epoch: int = 0
    batch_in_epoch: int = 0
    epoch_in_regions: bool = True
    """Whether the present epoch is trained on regions, if the graph is cut into any."""
    steps_per_epoch: int = 0
    """0 in checkpoints from before it was recorded."""
    elapsed_seconds: float = 0.0
    best_mrr: float = -1.0
    best_step: int = 0
    validated_step: int = -1
    record_mrr: float = -1.0
    record_reciprocal_ranks: list[float] = field(default_factory=list[float])
    validations_since_record: int = 0
    event_bytes: int = 0
    finished: bool = False
    recent_losses: list[float] = field(default_factory=list[float])

    @property
    def epochs_done(self) -> float:
        """Passes over the training queries so far, the present one in part."""
        if not self.steps_per_epoch:
            return float(self.epoch)
        return self.step / self.steps_per_epoch

    @property
    def epoch_of_step(self) -> int:
        """The epoch of the last step by the count of steps, from 0; ``epoch`` numbers orders.

        A pass over regions takes fewer steps, as facts between two of them are left out.
        """
        return max(math.ceil(self.epochs_done) - 1, 0)


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Adam,
    kept: Mapping[str, Mapping[str, Tensor]],
    counters: Counters,
) -> None:
    """Writes a checkpoint atomically: after ``kill -9`` the file is the old or the new one.

    Args:
        path: the file.
        model: gives the weights.
        optimizer: gives their moments.
        kept: other weights of the same model by what they are, such as ``best``.
        counters: go into the header.
    """
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for what, weights in kept.items():
        tensors |= {f"{what}.{name}": value for name, value in weights.items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"adam.{key}.{name}"] = value
    write_tensors(path, tensors, {"counters": json.dumps(asdict(counters))})


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Adam
) -> tuple[dict[str, dict[str, Tensor]], Counters]:
    """Restores model and optimiser in place.

    Returns:
        Other weights that were kept, by what they are, and the counters.

    Raises:
        BundleError: the file is missing or broken.
    """
    tensors, metadata = read_tensors(path)
    counters = _parse_counters(path, metadata)
    try:
        model.load_state_dict(_under("model.", tensors))
    except RuntimeError as error:
        raise BundleError(
            f"Expected the weights of this run's settings in {path}, got others. Was config.toml "
            "edited after the run was started?"
        ) from error
    for name, parameter in model.named_parameters():
        state = {
            key: tensors[f"adam.{key}.{name}"]
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"adam.{key}.{name}" in tensors
        }
        if state:
            optimizer.state[parameter] = state
    others = {name.split(".")[0] for name in tensors} - {"model", "adam"}
    return {what: _under(f"{what}.", tensors) for what in others}, counters


def read_counters(path: Path) -> Counters:
    """Reads where a run stands, without its weights.

    Raises:
        BundleError: the file is missing or broken.
    """
    return _parse_counters(path, read_metadata(path))


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
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
