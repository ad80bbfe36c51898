from pathlib import Path

import pytest

from knowformer.errors import StorageError
from knowformer.training.events import EventLog, read_events


def test_events_come_back_in_order(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    events = [{"step": number, "name": "Łódź\u2028\n"} for number in range(5)]
    for event in events:
        log.append(event)
    assert read_events(tmp_path / "events.jsonl") == events
    assert len((tmp_path / "events.jsonl").read_bytes().split(b"\n")) == 6


def test_a_new_log_starts_empty(tmp_path: Path) -> None:
    EventLog(tmp_path / "events.jsonl").append({"step": 1})
    log = EventLog(tmp_path / "events.jsonl")
    assert log.num_bytes == 0
    assert read_events(tmp_path / "events.jsonl") == []


def test_a_resumed_log_drops_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append({"step": 1})
    log.append({"step": 2})
    kept = log.num_bytes
    log.append({"step": 3})
    resumed = EventLog(path, keep_bytes=kept)
    resumed.append({"step": 30})
    assert read_events(path) == [{"step": 1}, {"step": 2}, {"step": 30}]


def test_a_log_that_lost_its_end_keeps_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append({"step": 1})
    log.append({"step": 2})
    kept = log.num_bytes
    path.write_bytes(path.read_bytes()[:-4])
    EventLog(path, keep_bytes=kept).append({"step": 3})
    assert read_events(path) == [{"step": 1}, {"step": 3}]


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"missing/events\.jsonl"):
        EventLog(tmp_path / "missing" / "events.jsonl")
