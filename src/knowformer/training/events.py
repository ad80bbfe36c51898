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
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypedDict

from knowformer.errors import StorageError


class TrainingEvent(TypedDict):
    """Training since the last event of this kind."""

    kind: Literal["training"]
    step: int
    epoch: int
    """From 0."""
    loss: float
    """Mean over the steps since the last event."""
    queries_per_second: float
    learning_rate: float
    progress: float
    """Fraction of the run that is done."""
    seconds_left: float
    """Of the whole run, with what follows training."""
    elapsed_seconds: float


ValidationEvent = TypedDict(
    "ValidationEvent",
    {
        "kind": Literal["validation"],
        "step": int,
        "epoch": int,
        "valid_mrr": float,
        "valid_hits@1": float,
        "valid_hits@10": float,
        "best": bool,
        "elapsed_seconds": float,
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
    elapsed_seconds: float


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
        self._path = path
        self._append(b"")  # makes the file
        with path.open("r+b") as file:
            # Whole lines only: the file may have been lost or cut while the checkpoint survived.
            file.truncate(file.read(keep_bytes).rfind(b"\n") + 1)

    @property
    def num_bytes(self) -> int:
        """Returns the file's length, for the checkpoint."""
        return self._path.stat().st_size

    def append(self, event: RecordedEvent) -> None:
        """Writes one event as one line."""
        self._append(json.dumps(event).encode() + b"\n")

    def _append(self, content: bytes) -> None:
        try:
            with self._path.open("ab") as file:
                file.write(content)
        except OSError as error:
            raise StorageError(
                f"Expected to write {self._path}, got '{error.strerror}'. Free some space; the "
                "run goes on from its last checkpoint with `resume=True`."
            ) from error


def read_events(path: Path) -> list[RecordedEvent]:
    """Reads the events of a run."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]
