"""TensorBoard: event files, in the run folder or in a folder of logs."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from knowformer.errors import require_package
from knowformer.tracking.tracker import Tracker
from knowformer.training.events import StartEvent

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

_logger = logging.getLogger(__name__)


class TensorBoard(Tracker):
    """Logs a run for TensorBoard."""

    service: ClassVar[str] = "TensorBoard"

    def __init__(self, logs: str | Path | None = None) -> None:
        """Does nothing before a run starts.

        Args:
            logs: gets a folder of the run's name; by default ``tensorboard`` in the run folder.

        Raises:
            MissingPackageError: tensorboard is not installed.
        """
        require_package("tensorboard", extra="tensorboard", purpose="track a run with it")
        super().__init__()
        self._logs = logs
        self._writer: SummaryWriter | None = None

    def start(self, event: StartEvent) -> None:
        """Opens an event file; what was logged after the checkpoint of a resumed run is dropped."""
        from torch.utils.tensorboard import SummaryWriter

        run = Path(event["run"])
        folder = run / "tensorboard" if self._logs is None else Path(self._logs) / run.name
        purge = event["step"] + 1 if event["step"] else None
        self._writer = SummaryWriter(str(folder), purge_step=purge)
        settings = {"run folder": str(run.absolute()), "data set": event["dataset"]}
        settings |= event["settings"]
        table = "".join(f"| {key} | {value} |\n" for key, value in settings.items())
        self._writer.add_text("settings", f"| setting | value |\n| --- | --- |\n{table}")
        _logger.info("Look at it with: tensorboard --logdir %s", folder.parent)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers of a step, flushed: the process may be killed."""
        assert self._writer is not None
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def finish(self) -> None:
        """Closes the event file."""
        assert self._writer is not None
        self._writer.close()
