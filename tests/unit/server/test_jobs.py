"""Jobs: answered in their turn, cancelled, taken up again by the next server."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knowformer import Reasoner
from knowformer.errors import BundleError, StorageError
from knowformer.live.snapshots import Snapshot
from knowformer.server import jobs as module
from knowformer.server.jobs import Job, Jobs
from knowformer.server.problems import Problem

QUESTIONS = b"place00\tnext\t?\n?\tskip\tplace05\nplace99\tnext\t?\n"
HOW: dict[str, Any] = {
    "questions": "tsv",
    "answers": "tsv",
    "k": 3,
    "new_only": False,
    "author": None,
}


@pytest.fixture
def snapshot(reasoner: Reasoner) -> Callable[[], Snapshot]:
    return lambda: Snapshot(0, reasoner, reasoner.graph)


def wait(jobs: Jobs, number: str) -> Job:
    end = time.monotonic() + 30
    while not jobs.find(number).has_ended:
        assert time.monotonic() < end
        time.sleep(0.01)
    return jobs.find(number)


def test_a_job_writes_what_the_library_writes(
    tmp_path: Path, reasoner: Reasoner, snapshot: Callable[[], Snapshot]
) -> None:
    jobs = Jobs(tmp_path / "jobs", snapshot)
    jobs.start()
    done = wait(jobs, jobs.add(QUESTIONS, **HOW).id)
    jobs.stop()
    assert (done.state, done.done, done.total, done.rejected) == ("done", 3, 3, 1)
    (tmp_path / "questions.tsv").write_bytes(QUESTIONS)
    reasoner.answer_file(tmp_path / "questions.tsv", tmp_path / "own.tsv", k=3)
    assert jobs.result(done).read_bytes() == (tmp_path / "own.tsv").read_bytes()
    assert "place99" in jobs.rejected(done).read_text("utf-8")


def test_what_has_not_ended_goes_on_with_the_next_server(
    tmp_path: Path, snapshot: Callable[[], Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knowformer.answering.batch_job.PART_ROWS", 1)
    first = Jobs(tmp_path / "jobs", snapshot)
    job = first.add(QUESTIONS, **HOW)
    first._is_stopping = True  # as a server that is told to stop while the first part is answered
    first.start()
    first.stop()
    record = json.loads((tmp_path / "jobs" / job.id / "job.json").read_text("utf-8"))
    assert record["state"] == "running"
    assert list((tmp_path / "jobs" / job.id).glob("answers.tsv.parts/part-*"))
    second = Jobs(tmp_path / "jobs", snapshot)
    assert [each.id for each in second.every()] == [job.id]
    second.start()
    done = wait(second, job.id)
    second.stop()
    assert (done.state, done.rejected) == ("done", 1)


def test_a_cancelled_job_is_not_answered(tmp_path: Path, snapshot: Callable[[], Snapshot]) -> None:
    jobs = Jobs(tmp_path / "jobs", snapshot)
    first, second = jobs.add(QUESTIONS, **HOW), jobs.add(QUESTIONS, **HOW)
    assert jobs.cancel(first.id).state == "cancelled"
    jobs.start()
    assert wait(jobs, second.id).state == "done"
    jobs.stop()
    assert not jobs.result(first).exists()
    assert jobs.cancel(second.id).state == "done"
    assert Jobs(tmp_path / "jobs", snapshot).find(first.id).state == "cancelled"


def test_a_file_at_fault_fails_with_a_sentence_without_our_paths(
    tmp_path: Path, snapshot: Callable[[], Snapshot]
) -> None:
    jobs = Jobs(tmp_path / "jobs", snapshot)
    jobs.start()
    failed = wait(jobs, jobs.add(b"\n", **HOW).id)
    jobs.stop()
    assert failed.state == "failed"
    assert failed.error == "Expected questions in questions.tsv, got an empty file."


def test_there_is_a_limit_and_the_oldest_that_have_ended_go(
    tmp_path: Path, snapshot: Callable[[], Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_UNDER_WAY", 2)
    monkeypatch.setattr(module, "MAX_KEPT", 1)
    jobs = Jobs(tmp_path / "jobs", snapshot)
    first, second = jobs.add(QUESTIONS, **HOW), jobs.add(QUESTIONS, **HOW)
    with pytest.raises(Problem) as refusal:
        jobs.add(QUESTIONS, **HOW)
    assert refusal.value.status_code == 429
    jobs.cancel(first.id)
    jobs.cancel(second.id)
    jobs.add(QUESTIONS, **HOW)
    with pytest.raises(Problem):
        jobs.find(first.id)
    assert not (tmp_path / "jobs" / first.id).exists()


def test_a_folder_that_is_no_job_is_left_alone(
    tmp_path: Path, snapshot: Callable[[], Snapshot], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "job.json").write_text("{}", "utf-8")
    jobs = Jobs(tmp_path, snapshot)
    job = jobs.add(QUESTIONS, **HOW)
    record = tmp_path / job.id / "job.json"
    outside = job.model_dump() | {"format": "tsv/../../../passwd"}
    record.write_text(json.dumps(outside), "utf-8")
    assert Jobs(tmp_path, snapshot).every() == []
    assert "left alone" in caplog.text


def test_links_lead_neither_jobs_nor_answers_elsewhere(
    tmp_path: Path, snapshot: Callable[[], Snapshot]
) -> None:
    job = Jobs(tmp_path / "jobs", snapshot).add(QUESTIONS, **HOW)
    (tmp_path / "secret").write_bytes(b"secret\n")
    questions = tmp_path / "jobs" / job.id / "questions.tsv"
    questions.unlink()
    questions.symlink_to(tmp_path / "secret")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / job.id).symlink_to(tmp_path / "jobs" / job.id)
    for folder in ("jobs", "linked"):
        assert Jobs(tmp_path / folder, snapshot).every() == []
    (tmp_path / "all").symlink_to(tmp_path / "jobs")
    with pytest.raises(BundleError, match="symbolic link"):
        Jobs(tmp_path / "all", snapshot)


def test_a_job_whose_state_cannot_be_stored_ends_and_so_do_those_after_it(
    tmp_path: Path, snapshot: Callable[[], Snapshot]
) -> None:
    jobs = Jobs(tmp_path, snapshot)
    first, second = (jobs.add(QUESTIONS, **HOW) for _ in range(2))
    record = tmp_path / first.id / module.RECORD
    record.unlink()
    record.mkdir()  # a file cannot take its place, as none can on a full disk
    with pytest.raises(StorageError):
        jobs.cancel(first.id)
    assert jobs.find(first.id).state == "queued"
    jobs.start()
    assert [wait(jobs, each.id).state for each in (first, second)] == ["done", "done"]
    jobs.stop()


def test_a_job_that_cannot_be_stored_leaves_nothing(
    tmp_path: Path, snapshot: Callable[[], Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(tmp_path, snapshot)
    monkeypatch.setattr(module, "RECORD", "no folder/job.json" + 300 * "x")
    with pytest.raises(StorageError):
        jobs.add(QUESTIONS, **HOW)
    assert (jobs.every(), list(tmp_path.iterdir())) == ([], [])
