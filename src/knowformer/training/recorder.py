"""Recorder: writes the events of a run to events.jsonl and reports them to a callback."""

from pathlib import Path

from knowformer.evaluation.metrics import Metrics
from knowformer.training.checkpoint import Counters
from knowformer.training.clock import Clock
from knowformer.training.events import EventLog, OnEvent, RecordedEvent, ValidationEvent


class Recorder:
    """Collects losses between events; resuming gives the same lines as an uninterrupted run."""

    def __init__(
        self,
        path: Path,
        counters: Counters,
        clock: Clock,
        *,
        on_event: OnEvent | None = None,
    ) -> None:
        """Opens the file.

        Args:
            path: events.jsonl; lines beyond ``counters.event_bytes`` are dropped.
            counters: the run's; length of the file and pending losses are kept there.
            clock: the run's.
            on_event: called with each event after it is written.
        """
        self._log = EventLog(path, keep_bytes=counters.event_bytes)
        self._counters = counters
        self._clock = clock
        self._on_event = on_event
        self._num_queries = 0
        self._recorded_at = clock.elapsed()

    @property
    def seconds_pending(self) -> float:
        """Seconds since the last training event."""
        return self._clock.elapsed() - self._recorded_at

    def add_step(self, loss: float, num_queries: int) -> None:
        """Adds a step to the next training event."""
        self._counters.recent_losses.append(loss)
        self._num_queries += num_queries

    def record_training(
        self, *, epoch: int, learning_rate: float, progress: float, seconds_left: float
    ) -> None:
        """Records the mean loss and the speed of the steps since the last such event."""
        losses, elapsed = self._counters.recent_losses, self._clock.elapsed()
        self._record(
            {
                "kind": "training",
                "step": self._counters.step,
                "epoch": epoch,
                "loss": sum(losses) / len(losses),
                "queries_per_second": self._num_queries / max(self.seconds_pending, 1e-9),
                "learning_rate": learning_rate,
                "progress": progress,
                "seconds_left": seconds_left,
                "elapsed_seconds": round(elapsed, 3),
            }
        )
        self._counters.recent_losses = []
        self._num_queries = 0
        self._recorded_at = self._clock.elapsed()

    def record_validation(
        self, metrics: Metrics, *, epoch: int, is_best: bool, auroc: float | None = None
    ) -> ValidationEvent:
        """Records a validation and returns its event."""
        event: ValidationEvent = {
            "kind": "validation",
            "step": self._counters.step,
            "epoch": epoch,
            "valid_mrr": metrics["mrr"],
            "valid_hits@1": metrics["hits@1"],
            "valid_hits@10": metrics["hits@10"],
            "best": is_best,
            "elapsed_seconds": round(self._clock.elapsed(), 3),
        }
        if auroc is not None:
            event["valid_auroc"] = auroc
        self._record(event)
        return event

    def record_stop(self, reason: str, *, epoch: int) -> None:
        """Records that a callback has ended the run."""
        self._record(
            {
                "kind": "stop",
                "step": self._counters.step,
                "epoch": epoch,
                "reason": reason,
                "elapsed_seconds": round(self._clock.elapsed(), 3),
            }
        )

    def _record(self, event: RecordedEvent) -> None:
        self._log.append(event)
        self._counters.event_bytes = self._log.num_bytes
        if self._on_event is not None:
            self._on_event(event)
