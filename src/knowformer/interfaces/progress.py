"""Progress: a live line on a terminal, a plain line every half a minute elsewhere."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

if TYPE_CHECKING:
    from knowformer.training.events import (
        Event,
        PlanEvent,
        TrainingEvent,
        ValidationEvent,
        WorkEvent,
    )

PLAIN_LINE_SECONDS = 30.0


class PlainLines:
    """Where there is no terminal, says every half a minute what is being done.

    From a thread of its own: what takes longest is what reports nothing in between.
    """

    def __init__(self, console: Console, describe: Callable[[], str]) -> None:
        """Does nothing before ``start``.

        Args:
            console: to print on.
            describe: returns the line.
        """
        self._console = console
        self._describe = describe
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begins to print."""
        if not self._console.is_terminal and not self._console.quiet:
            threading.Thread(target=self._print, name="progress", daemon=True).start()

    def stop(self) -> None:
        """Prints no more."""
        self._stopped.set()

    def _print(self) -> None:
        while not self._stopped.wait(PLAIN_LINE_SECONDS):
            self._console.print(self._describe(), markup=False, highlight=False, soft_wrap=True)


class _Display:
    """A live line and the plain lines that stand for it, shown while in a ``with`` block."""

    def __init__(self, console: Console, *columns: ProgressColumn) -> None:
        self._console = console
        self._started = time.monotonic()
        self._live = _live(console, *columns)
        self._lines = PlainLines(console, lambda: f"{self.describe()}  {self._passed()}")

    def describe(self) -> str:
        """Returns what is being done."""
        raise NotImplementedError

    def _passed(self) -> str:
        return f"after {_clock(time.monotonic() - self._started)}"

    def __enter__(self) -> Self:
        self._live.start()
        self._lines.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lines.stop()
        self._live.stop()


class TrainingDisplay(_Display):
    """Shows what a run is at: how far it is, its loss, its speed, and the time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            console,
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[status]}"),
        )
        self._doing = "starting"
        self._doing_since = self._started
        self._status = ""
        self._validation = "-"
        self._record = 0.0
        self._task: TaskID = self._live.add_task(self._doing, total=1.0, status="")

    def __call__(self, event: "Event") -> None:
        """Takes an event of training."""
        if event["kind"] == "plan":
            self._show_plan(event)
        elif event["kind"] == "work":
            self._show_work(event)
        elif event["kind"] == "validation":
            self._show_validation(event)
        elif event["kind"] == "training":
            self._show_training(event)
        elif event["kind"] == "stop":
            self._console.print(
                f"stopped: {event['reason']}", markup=False, highlight=False, soft_wrap=True
            )

    def describe(self) -> str:
        """Returns what the run is at."""
        return f"{self._doing}  {self._status}".rstrip()

    def _show(self, doing: str, completed: float, status: str) -> None:
        if doing != self._doing:
            self._doing, self._doing_since = doing, time.monotonic()
        self._status = status
        percent = f"{completed:4.0%} {status}" if completed else status
        self._live.update(self._task, description=doing, completed=completed, status=percent)

    def _show_plan(self, event: "PlanEvent") -> None:
        free, seen, entities = event["available_bytes"], event["num_seen"], event["num_entities"]
        view = "" if seen == entities else f"a query sees {seen:,} of {entities:,} entities; "
        self._console.print(
            f"plan  {view}"
            f"{event['num_queries']:,} queries an epoch, {event['batch_size']} a step, "
            f"{_counted(event['threads'], 'thread')}; about "
            f"{_clock(event['seconds_per_epoch'])} an epoch and "
            f"{event['memory_bytes'] / 1e9:.1f} GB"
            + ("" if free is None else f" of {free / 1e9:.0f} GB free"),
            highlight=False,
            soft_wrap=True,
        )
        if not event["fits"]:
            self._console.print(
                "note: this may not fit into memory; a smaller model.hidden_dim or "
                "training.batch_size needs less",
                highlight=False,
                soft_wrap=True,
            )

    def _show_work(self, event: "WorkEvent") -> None:
        done, total = event["done"], event["total"]
        if not total:
            self._show(event["doing"], 0.0, "")
            return
        since = self._doing_since if event["doing"] == self._doing else time.monotonic()
        left = (time.monotonic() - since) * (total - done) / max(1, done)
        self._show(event["doing"], done / total, f"{done:,} of {total:,}{_left(left)}")

    def _show_validation(self, event: "ValidationEvent") -> None:
        self._validation = f"{event['valid_mrr']:.3f}"
        # Where links are told from unlinked pairs, AUROC selects the weights, elsewhere MRR.
        auroc = event.get("valid_auroc")
        measure = event["valid_mrr"] if auroc is None else auroc
        mark = "" if auroc is None else f"  AUROC {auroc:.3f}"
        mark += "  [bold green]kept[/]" if event["best"] else ""
        if event["best"] and measure < self._record:
            # The latest of those that cannot be told apart is selected: it has trained the longest.
            mark += f" (not clearly below {self._record:.3f})"
        self._record = max(self._record, measure)
        self._console.print(
            f"epoch {event['epoch'] + 1:>3}  {_clock(event['elapsed_seconds'])}  "
            f"valid MRR {self._validation}  hits@1 {event['valid_hits@1']:.3f}  "
            f"hits@10 {event['valid_hits@10']:.3f}{mark}",
            highlight=False,
        )

    def _show_training(self, event: "TrainingEvent") -> None:
        self._show(
            "training",
            event["progress"],
            f"epoch {event['epoch'] + 1}  loss {event['loss']:.3f}  "
            f"{event['queries_per_second']:.0f} queries/s  valid MRR {self._validation}"
            f"{_left(event['seconds_left'])}",
        )


class Counting(_Display):
    """Shows work that is counted."""

    def __init__(self, console: Console, what: str) -> None:
        super().__init__(
            console,
            TextColumn(what),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self._what = what
        self._count = ""
        self._task = self._live.add_task(what, total=None)

    def describe(self) -> str:
        """Returns what is being done, and how much of it is done."""
        return f"{self._what} {self._count}".rstrip()

    def __call__(self, done: int, total: int) -> None:
        """Takes how much is done, and how much there is."""
        self._count = f"{done:,} of {total:,}"
        self._live.update(self._task, completed=done, total=total)


def _live(console: Console, *columns: ProgressColumn) -> Progress:
    """A live line; nothing where there is no terminal or nobody wants it."""
    hidden = not console.is_terminal or console.quiet
    return Progress(*columns, console=console, transient=True, disable=hidden)


def counting_progress(console: Console, what: str) -> Progress:
    """A bar for work that is counted; nothing where there is no terminal."""
    return _live(
        console,
        TextColumn(what),
        BarColumn(bar_width=28),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _left(seconds: float) -> str:
    """Returns the time left; nothing rather than none, as long as work goes on."""
    return f"  {_clock(seconds)} left" if seconds >= 0.5 else ""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def import_progress(console: Console) -> Generator[Callable[[str, int, int], None]]:
    """Yields a function to be called with what is being done, and bytes read so far and in all."""
    columns = (
        TextColumn("{task.description:5}"),
        BarColumn(bar_width=28),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with _live(console, *columns) as progress:
        task, line = progress.add_task("read", total=None), ["read"]

        def tell(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)
            line[0] = f"{what}  {100 * done / max(1, total):.0f}%"

        lines = PlainLines(console, lambda: line[0])
        lines.start()
        try:
            yield tell
        finally:
            lines.stop()
