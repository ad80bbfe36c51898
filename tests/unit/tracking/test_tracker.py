import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from knowformer.errors import MissingPackageError
from knowformer.tracking import TRACKERS
from knowformer.tracking.tracker import Tracker, store_id, stored_id
from knowformer.training.events import StartEvent

from .conftest import TellRun


class Memory(Tracker):
    """Keeps what it is told; fails at a step of one's choosing."""

    service = "Memory"

    def __init__(self, *, fails_at: int | None = None) -> None:
        super().__init__()
        self.told: list[object] = []
        self._fails_at = fails_at

    def start(self, event: StartEvent) -> None:
        self.told.append(event["step"])

    def log(self, values: Mapping[str, float], step: int) -> None:
        if step == self._fails_at:
            raise ConnectionError("the disk of the service is full\nTraceback: ...")
        self.told.append(dict(values))

    def finish(self) -> None:
        self.told.append("finished")


def test_events_become_numbers_under_the_same_names_everywhere(tell_resumed: TellRun) -> None:
    tracker = Memory()
    tell_resumed(tracker)
    assert tracker.told == [
        10,
        {
            "training/loss": 2.0,
            "training/queries_per_second": 50.0,
            "training/learning_rate": 0.005,
        },
        {"validation/mrr": 0.5, "validation/hits_at_1": 0.25, "validation/hits_at_10": 1.0},
        {"final/best_validation/step": 20.0, "final/best_validation/mrr": 0.5},
        "finished",
    ]


def test_a_tracker_that_fails_warns_once_and_is_quiet(
    tell_first_half: TellRun, tell_resumed: TellRun, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = Memory(fails_at=20)
    with caplog.at_level(logging.WARNING):
        tell_first_half(tracker)
        tell_resumed(tracker)
    assert tracker.told[0] == 0
    assert len(tracker.told) == 2
    assert [record.message for record in caplog.records] == [
        "Memory tracks this run no longer, the training goes on: the disk of the service is full"
    ]


def test_ids_of_services_are_kept_side_by_side(run: Path) -> None:
    assert stored_id(str(run), "one") is None
    store_id(str(run), "one", "1")
    store_id(str(run), "two", "2")
    assert (stored_id(str(run), "one"), stored_id(str(run), "two")) == ("1", "2")


def test_a_missing_package_is_said_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knowformer.errors.find_spec", lambda _: None)
    for name, tracker in TRACKERS.items():
        with pytest.raises(MissingPackageError, match=rf"pip install 'knowformer\[{name}\]'"):
            tracker()
