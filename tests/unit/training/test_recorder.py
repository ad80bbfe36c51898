from pathlib import Path

import pytest

from knowformer.training.checkpoint import Counters
from knowformer.training.clock import Clock
from knowformer.training.events import Event, read_events
from knowformer.training.recorder import Recorder

METRICS = {"mrr": 0.5, "mr": 2.0, "hits@1": 0.25, "hits@3": 0.5, "hits@10": 0.75}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_a_training_event_sums_up_the_steps_since_the_last(path: Path) -> None:
    now = [0.0]
    counters = Counters()
    recorder = Recorder(path, counters, Clock(lambda: now[0]))
    for loss in (3.0, 1.0):
        recorder.add_step(loss, 16)
    counters.step, now[0] = 2, 4.0
    assert recorder.seconds_pending == 4.0
    recorder.record_training(epoch=0, learning_rate=0.1, progress=0.25, seconds_left=12.0)
    assert recorder.seconds_pending == 0.0
    recorder.add_step(0.5, 8)
    counters.step, now[0] = 3, 6.0
    recorder.record_training(epoch=1, learning_rate=0.1, progress=0.5, seconds_left=6.0)
    first, second = read_events(path)
    assert first == {
        "kind": "training",
        "step": 2,
        "epoch": 0,
        "loss": 2.0,
        "queries_per_second": 8.0,
        "learning_rate": 0.1,
        "progress": 0.25,
        "seconds_left": 12.0,
        "elapsed_seconds": 4.0,
    }
    assert second["kind"] == "training"
    assert (second["loss"], second["queries_per_second"], second["epoch"]) == (0.5, 4.0, 1)


def test_a_validation_event_has_the_keys_that_scripts_rely_on(path: Path) -> None:
    seen: list[Event] = []
    recorder = Recorder(path, Counters(step=7), Clock(lambda: 0.0), on_event=seen.append)
    event = recorder.record_validation(METRICS, epoch=3, is_best=True)
    assert event == {
        "kind": "validation",
        "step": 7,
        "epoch": 3,
        "valid_mrr": 0.5,
        "valid_hits@1": 0.25,
        "valid_hits@10": 0.75,
        "best": True,
        "elapsed_seconds": 0.0,
    }
    assert seen == read_events(path) == [event]


def test_a_resumed_record_goes_on_from_the_checkpoint(path: Path) -> None:
    counters = Counters()
    recorder = Recorder(path, counters, Clock(lambda: 0.0))
    recorder.record_validation(METRICS, epoch=0, is_best=True)
    recorder.add_step(3.0, 16)
    saved = Counters(event_bytes=counters.event_bytes, recent_losses=list(counters.recent_losses))
    recorder.record_validation(METRICS, epoch=1, is_best=True)  # lost with the process

    resumed = Recorder(path, saved, Clock(lambda: 0.0))
    resumed.add_step(1.0, 16)
    resumed.record_training(epoch=1, learning_rate=0.1, progress=0.5, seconds_left=6.0)
    first, second = read_events(path)
    assert (first["kind"], first["epoch"]) == ("validation", 0)
    assert second["kind"] == "training"
    assert second["loss"] == 2.0  # the loss before the checkpoint counts too
