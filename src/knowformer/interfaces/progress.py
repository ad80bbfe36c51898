"""Progress reporting: a live line on a terminal, plain lines now and then elsewhere."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from knowformer.training.events import Event, PlanEvent, TrainingEvent, ValidationEvent

PLAIN_LINE_SECONDS = 15.0


class TrainingDisplay:
    """Shows loss, queries a second, time left and validation MRR while a run goes on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._validation = "-"
        self._record = 0.0
        self._printed_at = 0.0
        self._progress = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=28),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[speed]} queries/s"),
            TextColumn("valid MRR {task.fields[validation]}"),
            TextColumn("{task.fields[left]} left"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID = self._progress.add_task(
            "train", total=1.0, epoch="0", loss="-", speed="-", validation="-", left="-"
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Takes an event of training."""
        if event["kind"] == "plan":
            self._show_plan(event)
        elif event["kind"] == "calibration":
            self._progress.update(self._task, completed=event["done"] / event["total"], left="-")
        elif event["kind"] == "validation":
            self._show_validation(event)
        else:
            self._show_training(event)

    def _show_plan(self, event: PlanEvent) -> None:
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

    def _show_validation(self, event: ValidationEvent) -> None:
        self._validation = f"{event['valid_mrr']:.3f}"
        mark = "  [bold green]kept[/]" if event["best"] else ""
        if event["best"] and event["valid_mrr"] < self._record:
            # The latest of those that cannot be told apart is selected: it has trained the longest.
            mark += f" (not clearly below {self._record:.3f})"
        self._record = max(self._record, event["valid_mrr"])
        self._console.print(
            f"epoch {event['epoch'] + 1:>3}  {_clock(event['elapsed_seconds'])}  "
            f"valid MRR {self._validation}  hits@1 {event['valid_hits@1']:.3f}  "
            f"hits@10 {event['valid_hits@10']:.3f}{mark}",
            highlight=False,
        )
        self._progress.update(self._task, validation=self._validation)

    def _show_training(self, event: TrainingEvent) -> None:
        fields = {
            "epoch": str(event["epoch"] + 1),
            "loss": f"{event['loss']:.3f}",
            "speed": f"{event['queries_per_second']:.0f}",
            "left": _clock(event["seconds_left"]),
        }
        self._progress.update(
            self._task,
            completed=event["progress"],
            epoch=fields["epoch"],
            loss=fields["loss"],
            speed=fields["speed"],
            left=fields["left"],
        )
        now = time.monotonic()
        if not self._console.is_terminal and now - self._printed_at > PLAIN_LINE_SECONDS:
            self._printed_at = now
            self._console.print(
                f"epoch {fields['epoch']:>3}  {_clock(event['elapsed_seconds'])}  "
                f"loss {fields['loss']}  {fields['speed']} queries/s  {fields['left']} left",
                highlight=False,
            )


def counting_progress(console: Console, what: str) -> Progress:
    """A bar for work that is counted; nothing where there is no terminal."""
    return Progress(
        TextColumn(what),
        BarColumn(bar_width=28),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Counting:
    """A bar for work that is counted, or a plain line now and then where there is no terminal."""

    def __init__(self, console: Console, what: str) -> None:
        self._console = console
        self._what = what
        self._bar = counting_progress(console, what)
        self._task = self._bar.add_task(what, total=None)
        self._started = self._printed_at = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Takes how much is done, and how much there is."""
        self._bar.update(self._task, completed=done, total=total)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._printed_at > PLAIN_LINE_SECONDS:
            self._printed_at = now
            passed = _clock(now - self._started)
            self._console.print(f"{self._what} {done:,}/{total:,}  {passed}", highlight=False)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def import_progress(console: Console) -> Generator[Callable[[str, int, int], None]]:
    """Yields a function to be called with what is being done, and bytes read so far and in all."""
    with Progress(
        TextColumn("{task.description:5}"),
        BarColumn(bar_width=28),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("read", total=None)
        yield lambda what, done, total: progress.update(
            task, description=what, completed=done, total=total
        )
