"""Weights & Biases: a run in a project, online or offline."""

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar

from knowformer.errors import require_package
from knowformer.tracking.tracker import Tracker, store_id, stored_id
from knowformer.training.events import StartEvent


class WandB(Tracker):
    """Logs a run to Weights & Biases; ``$WANDB_MODE`` and its other variables apply."""

    service: ClassVar[str] = "Weights & Biases"

    def __init__(self, project: str | None = None) -> None:
        """Does nothing before a run starts.

        Args:
            project: its name; by default ``$WANDB_PROJECT``, or ``knowformer``.

        Raises:
            MissingPackageError: wandb is not installed.
        """
        require_package("wandb", extra="wandb", purpose="track a run with it")
        super().__init__()
        self._project = project
        self._run: Any = None

    def start(self, event: StartEvent) -> None:
        """Opens a run, or goes on under its id; files of the service go into the run folder."""
        wandb = import_module("wandb")  # not among the packages that types are checked with
        folder = Path(event["run"]).absolute()
        run_id = stored_id(event["run"], "wandb") or token_hex(4)
        # Standard output is the command's own: it may be JSON.
        quiet = wandb.Settings(silent=True, console="off")
        self._run = wandb.init(
            project=self._project or os.environ.get("WANDB_PROJECT") or "knowformer",
            id=run_id,
            name=folder.name,
            resume="allow",
            dir=folder,
            config=event["settings"] | {"run_folder": str(folder), "dataset": event["dataset"]},
            allow_val_change=True,  # limits of a run that is trained further
            settings=quiet,
        )
        store_id(event["run"], "wandb", run_id)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers of a step."""
        self._run.log(dict(values), step=step)

    def finish(self) -> None:
        """Ends the run, and waits until all is sent."""
        self._run.finish()
