"""Events of a run, one type per kind, and events.jsonl, which has one of them a line.

    plan         memory and time that the run will take; reported, not recorded
    start        settings and run folder; reported, not recorded
    training     loss and speed since the last such line
    validation   metrics of the validation facts, and whether this is the best checkpoint so far
    stop         a callback has ended the run
    end          what the run has come to; reported, not recorded
    work         anything else that takes time, and how far it is; reported, not recorded

Events are plain dictionaries: their keys are those of the JSON lines.
"""

import json
import os
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AllowInfNan, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic wants it before Python 3.12

from knowformer.errors import BundleError, StorageError
from knowformer.storage.atomic_files import write_bytes
from knowformer.storage.plain_files import append_plain, read_plain

MOST_BYTES = 2**30  # of events.jsonl

Number = Annotated[float, AllowInfNan(False)]


class TrainingEvent(TypedDict):
    """Training since the last event of this kind."""

    kind: Literal["training"]
    step: int
    epoch: int
    """From 0."""
    loss: Number
    """Mean over the steps since the last event."""
    queries_per_second: Number
    learning_rate: Number
    progress: Number
    """Fraction of the run that is done."""
    seconds_left: Number
    """Of the whole run, with what follows training."""
    elapsed_seconds: Number


ValidationEvent = TypedDict(
    "ValidationEvent",
    {
        "kind": Literal["validation"],
        "step": int,
        "epoch": int,
        "valid_mrr": Number,
        "valid_hits@1": Number,
        "valid_hits@10": Number,
        "valid_auroc": NotRequired[Number],  # where it selects the weights
        "best": bool,
        "elapsed_seconds": Number,
    },
)


class StartEvent(TypedDict):
    """A run before its first step, or before it goes on."""

    kind: Literal["start"]
    run: str
    """The run folder."""
    dataset: str
    settings: dict[str, Any]
    """Under their dotted keys."""
    step: int
    """Steps done before."""


class StopEvent(TypedDict):
    """A callback has raised ``StopTraining``."""

    kind: Literal["stop"]
    step: int
    epoch: int
    reason: str
    elapsed_seconds: Number


class EndEvent(TypedDict):
    """A run when all its files are written."""

    kind: Literal["end"]
    run: str
    step: int
    metrics: dict[str, Any]
    """As in metrics.json."""


class PlanEvent(TypedDict):
    """The fields of ``training.plan.Plan``, and whether memory suffices."""

    kind: Literal["plan"]
    fits: bool
    batch_size: int
    micro_batch_size: int
    threads: int
    memory_bytes: float
    available_bytes: float | None
    num_queries: int
    seconds_per_epoch: float
    num_entities: int
    """Of the graph that a step trains on."""
    num_seen: int
    """Of these, by each query."""


Work = Literal["reading", "preparing", "validating", "calibrating", "writing"]


class WorkEvent(TypedDict):
    """What a run does besides training."""

    kind: Literal["work"]
    doing: Work
    done: int
    total: int
    """0: not known."""


RecordedEvent = TrainingEvent | ValidationEvent | StopEvent
Event = RecordedEvent | PlanEvent | StartEvent | EndEvent | WorkEvent
OnEvent = Callable[[Event], None]


def work_event(doing: Work, done: int = 0, total: int = 0) -> WorkEvent:
    """Returns the event that says what is being done, and how far it is."""
    return {"kind": "work", "doing": doing, "done": done, "total": total}


class EventLog:
    """Appends events to a file; on resume, drops the lines written after the checkpoint."""

    def __init__(self, path: Path, *, keep_bytes: int = 0) -> None:
        """Opens the file; one that lines are dropped from, or that has links, is written anew.

        So what a link leads to is left alone.

        Raises:
            BundleError: what is kept is damaged.
            StorageError: the file cannot be written.
        """
        self._path = path
        kept = kept_lines(path, keep_bytes)
        if not kept or not _is_only(path, len(kept)):
            write_bytes(path, kept)

    @property
    def num_bytes(self) -> int:
        """Returns the file's length, for the checkpoint."""
        return self._path.stat().st_size

    def append(self, event: RecordedEvent) -> None:
        """Writes one event as one line."""
        try:
            append_plain(self._path, json.dumps(event).encode() + b"\n")
        except OSError as error:
            raise StorageError(
                f"Expected to write {self._path}, got '{error.strerror}'. Free some space; the "
                "run goes on from its last checkpoint with `resume=True`."
            ) from error


def kept_lines(path: Path, keep_bytes: int) -> bytes:
    """Returns what a resumed run keeps of its events.

    Raises:
        BundleError: it is damaged.
    """
    # Whole lines only: the file may have been lost or cut while the checkpoint survived.
    written = _read(path)[:keep_bytes] if keep_bytes else b""
    kept = written[: written.rfind(b"\n") + 1]
    _parse(path, kept)
    return kept


def read_events(path: Path) -> list[RecordedEvent]:
    """Reads the events of a run.

    Raises:
        BundleError: the file is missing or damaged.
    """
    return _parse(path, _read(path))


def _is_only(path: Path, size: int) -> bool:
    """Returns True for a file of that size under no other name."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and (found.st_nlink, found.st_size) == (1, size)


def _read(path: Path) -> bytes:
    if not os.path.lexists(path):
        return b""
    try:
        return read_plain(path, most=MOST_BYTES)
    except OSError as error:
        raise BundleError(
            f"Expected the events of a run in {path}, got '{error.strerror}'. Remove it to go on "
            "without them."
        ) from error


@cache
def _events() -> Any:
    return TypeAdapter(Annotated[RecordedEvent, Field(discriminator="kind")])


def _parse(path: Path, content: bytes) -> list[RecordedEvent]:
    events: list[RecordedEvent] = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            events += [_events().validate_json(line)] if line else []
        except ValidationError:
            raise BundleError(
                f"Expected an event of training in {path}:{number}, got other text. The file is "
                "damaged; remove it to go on without it."
            ) from None
    return events
