import os
from collections.abc import Callable
from pathlib import Path

import pytest

from knowformer.errors import BundleError, StorageError
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
    (tmp_path / "taken").touch()
    with pytest.raises(StorageError, match=r"taken/events\.jsonl"):
        EventLog(tmp_path / "taken" / "events.jsonl")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_what_a_link_leads_to_is_never_written(link: Callable[..., None], tmp_path: Path) -> None:
    path, other = tmp_path / "run" / "events.jsonl", tmp_path / "other"
    path.parent.mkdir()
    EventLog(other).append(event(1))
    before = other.read_bytes()
    link(other, path)
    EventLog(path, keep_bytes=len(before)).append(event(2))
    assert other.read_bytes() == before
    assert read_events(path) == [event(1), event(2)]


@pytest.mark.parametrize("line", ["{", "[]", "[" * 100_000, '{"kind": "training"}', "\udcff"])
def test_damaged_events_are_named_by_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    EventLog(path).append(event(1))
    with path.open("ab") as file:
        file.write(line.encode(errors="surrogateescape") + b"\n")
    for read in (read_events, lambda path: EventLog(path, keep_bytes=path.stat().st_size)):
        with pytest.raises(BundleError, match=r"events\.jsonl:2, .* damaged"):
            read(path)


def test_events_that_are_no_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events.jsonl")
    with pytest.raises(BundleError, match="a named pipe"):
        EventLog(tmp_path / "events.jsonl", keep_bytes=1)
