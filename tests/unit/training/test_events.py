from pathlib import Path

import pytest

from knowformer.errors import StorageError
from knowformer.training.events import EventLog, TrainingEvent, read_events


def event(step: int) -> TrainingEvent:
    return {
        "kind": "training",
        "step": step,
        "epoch": 0,
        "loss": 0.1 + 0.2,
        "queries_per_second": 1e9,
        "learning_rate": 1e-30,
        "progress": 0.5,
        "seconds_left": 3.0,
        "elapsed_seconds": 3.0,
    }


def test_events_come_back_in_order(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    events = [event(number) for number in range(5)]
    for one in events:
        log.append(one)
    assert read_events(tmp_path / "events.jsonl") == events
    assert len((tmp_path / "events.jsonl").read_bytes().split(b"\n")) == 6


def test_a_new_log_starts_empty(tmp_path: Path) -> None:
    EventLog(tmp_path / "events.jsonl").append(event(1))
    log = EventLog(tmp_path / "events.jsonl")
    assert log.num_bytes == 0
    assert read_events(tmp_path / "events.jsonl") == []


def test_a_resumed_log_drops_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append(event(1))
    log.append(event(2))
    kept = log.num_bytes
    log.append(event(3))
    resumed = EventLog(path, keep_bytes=kept)
    resumed.append(event(30))
    assert read_events(path) == [event(1), event(2), event(30)]


def test_a_log_that_lost_its_end_keeps_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append(event(1))
    log.append(event(2))
    kept = log.num_bytes
    path.write_bytes(path.read_bytes()[:-4])
    EventLog(path, keep_bytes=kept).append(event(3))
    assert read_events(path) == [event(1), event(3)]


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"missing/events\.jsonl"):
        EventLog(tmp_path / "missing" / "events.jsonl")
