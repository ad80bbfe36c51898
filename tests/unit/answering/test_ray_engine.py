"""What a worker of Ray is told and says; with a real Ray in tests/integration/test_ray_answers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knowformer import errors
from knowformer.answering import ray_engine
from knowformer.answering.answerer import Answerer
from knowformer.answering.folder_job import FolderJob
from knowformer.answering.query_files import Span
from knowformer.answering.ranking import Options
from knowformer.answering.ray_engine import RayEngine, ShardWorker
from knowformer.errors import ConfigError, MissingPackageError

SHARD = {"first": 1, "offset": 0}


@pytest.fixture
def job(answerer: Answerer, tmp_path: Path) -> FolderJob:
    queries = tmp_path / "q.tsv"
    queries.write_text("ann\tmother_of\t?\nbad\n", "utf-8")
    options = Options(k=2, among=(0, 1, 2))
    return FolderJob(answerer, options, queries, tmp_path / "out", "jsonl", 2)


def plain_of(engine: RayEngine, job: FolderJob) -> dict[str, Any]:
    return engine._plain(job)


def test_only_plain_values_cross(job: FolderJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    plain = plain_of(RayEngine("run", graph="umls"), replace(job, queries=Path("q.tsv")))
    json.dumps(plain)  # nothing but numbers, text, lists and mappings
    # A worker is elsewhere: paths do not depend on where the job was started, names stay.
    assert (plain["run"], plain["graph"]) == (str(tmp_path / "run"), "umls")
    assert plain["queries"] == str(tmp_path / "q.tsv")


def test_a_worker_loads_once_and_answers_shards(job: FolderJob, monkeypatch: pytest.MonkeyPatch):
    loaded: list[str] = []

    class Run:
        answerer = job.answerer

        @classmethod
        def from_pretrained(cls, run: str, **_: object) -> "Run":
            loaded.append(run)
            return cls()

    monkeypatch.setattr(ray_engine, "AnsweringRun", Run)
    plain = plain_of(RayEngine("run"), job)
    worker = ShardWorker(plain)
    assert [worker(SHARD) for _ in range(2)] == [{"questions": 2, "error": ""}] * 2
    assert loaded == ["run"]
    assert job.read_receipt(0) is not None
    other = ShardWorker({**plain, "fingerprint": "another"})
    assert "same on every machine" in other(SHARD)["error"]


def test_an_error_comes_back_as_a_sentence_that_names_the_machine(job: FolderJob, tmp_path: Path):
    worker = ShardWorker(plain_of(RayEngine(str(tmp_path / "nothing")), job))
    said = worker(SHARD)["error"]
    assert said.startswith("Expected ")
    assert "nothing" in said
    assert "This was on" in said


def test_without_ray_a_sentence_says_what_to_install(
    job: FolderJob, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"pip install 'knowformer\[ray\]'"):
        next(RayEngine("run").answer(job, [Span()]))


def test_numbers_that_cannot_be_are_refused(job: FolderJob, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(errors, "find_spec", lambda _: object())
    for engine in (RayEngine("run", workers=-1), RayEngine("run", threads=0)):
        with pytest.raises(ConfigError, match="at least one thread"):
            next(engine.answer(job, [Span()]))
    assert list(RayEngine("run").answer(job, [])) == []  # and no Ray is started for nothing
