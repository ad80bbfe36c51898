"""The weights of every validation of a run, kept beside it for the selection study."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from knowformer.model.knowformer import KnowFormer
from knowformer.storage.tensor_files import read_tensors, write_tensors
from knowformer.training.events import ValidationEvent


@dataclass(frozen=True)
class ValidationWeights:
    """A folder inside a run folder, with one file of weights per validation."""

    run: Path

    @property
    def folder(self) -> Path:
        """Where the weights are; the folder exists if and only if the run keeps them."""
        return self.run / "validations"

    @property
    def are_kept(self) -> bool:
        """Whether the run keeps the weights of its validations."""
        return self.folder.is_dir()

    def save(self, model: KnowFormer, event: ValidationEvent) -> None:
        """Writes the weights of one validation; a callback of ``knowformer.train``."""
        write_tensors(self._path(event["step"]), model.state_dict())

    def load(self, step: int) -> dict[str, Tensor]:
        """Loads the weights that the run had at a validation.

        Raises:
            BundleError: they were not kept, or the file is broken.
        """
        return read_tensors(self._path(step))[0]

    def remove(self) -> None:
        """Removes them all; the run's best checkpoint stays."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, step: int) -> Path:
        return self.folder / f"step{step:08d}.safetensors"
