"""The batch job, interrupted and taken up again; formats and kill -9 are integration tests."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from knowformer.answering import answerer as answerer_module
from knowformer.answering import batch_job
from knowformer.answering.answerer import Answerer
from knowformer.answering.batch_job import BatchSummary, answer_file
from knowformer.answering.query_files import Row
from knowformer.answering.ranking import Options
from knowformer.errors import ConfigError, StorageError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.storage.locks import sole_process

OPTIONS = Options(k=2)


class StoppedError(Exception):
    """What ends a job in these tests."""


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_job, "PART_ROWS", 2)


@pytest.fixture
def run(answerer: Answerer, tmp_path: Path) -> Callable[..., BatchSummary]:
    """Answers ``q.tsv`` into ``out.jsonl``; ``stop_after`` parts the job ends as by a crash."""

    def job(
        lines: list[str], *, stop_after: int | None = None, options: Options = OPTIONS, **more: bool
    ) -> BatchSummary:
        (tmp_path / "q.tsv").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        done: list[int] = []

        def progress(*_: int) -> None:
            done.append(1)
            if len(done) == stop_after:
                raise StoppedError

        out = tmp_path / "out.jsonl"
        return answer_file(answerer, tmp_path / "q.tsv", out, options, progress=progress, **more)

    return job


QUESTIONS = ["ann\tmother_of\t?", "?\tmother_of\tbob", "bad", "ann\t?\tdan", "nobody\tmother_of\t?"]


@pytest.mark.usefixtures("small_parts")
def test_a_job_that_was_stopped_goes_on_and_ends_with_the_same_bytes(
    run: Callable[..., BatchSummary], tmp_path: Path
):
    quiet = run(QUESTIONS)
    assert (quiet.questions, quiet.answered, quiet.rejected, quiet.resumed) == (5, 3, 2, 0)
    names = ("out.jsonl", "out.jsonl.rejected")
    whole = [(tmp_path / name).read_bytes() for name in names]
    for name in names:
        (tmp_path / name).unlink()
    with pytest.raises(StoppedError):
        run(QUESTIONS, stop_after=2)
    assert not (tmp_path / "out.jsonl").exists()
    assert run(QUESTIONS).resumed == 4
    assert [(tmp_path / name).read_bytes() for name in names] == whole
    assert not (tmp_path / "out.jsonl.parts").exists()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("changed", ["resume", "options", "questions"])
def test_another_job_starts_anew(changed: str, run: Callable[..., BatchSummary]):
    with pytest.raises(StoppedError):
        run(QUESTIONS, stop_after=2)
    again = {
        "resume": lambda: run(QUESTIONS, resume=False),
        "options": lambda: run(QUESTIONS, options=Options(k=3)),
        "questions": lambda: run([*QUESTIONS, QUESTIONS[0]]),
    }
    assert again[changed]().resumed == 0


@pytest.mark.usefixtures("small_parts")
def test_a_resumed_job_gives_no_more_hints_than_one_that_was_not_stopped(
    run: Callable[..., BatchSummary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(batch_job, "HINTS", 3)
    lines = ["annn\tmother_of\t?"] * 6
    run(lines)
    whole = (tmp_path / "out.jsonl.rejected").read_text("utf-8")
    assert whole.count("Did you mean") == 3
    with pytest.raises(StoppedError):
        run(lines, stop_after=1)
    run(lines)
    assert (tmp_path / "out.jsonl.rejected").read_text("utf-8") == whole


def test_rejections_are_told_by_their_key_whatever_the_order_or_the_names(tmp_path: Path):
    records = [
        {"row": "x", "rejected": "reason", "line": 1},
        {"line": 2, "query": {"head": "rejected"}, "answers": [{"entity": '"rejected"'}]},
        {"line": 3, "rejected": "", "row": "y"},
    ]
    part = tmp_path / "part.jsonl"
    part.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    read = {
        rejected: [r["line"] for r in batch_job._read_part(part, rejected=rejected)]
        for rejected in (True, False)
    }
    assert read == {True: [1, 3], False: [2]}


def test_an_entity_may_be_called_rejected(build_answerer: Callable[..., Answerer], tmp_path: Path):
    graph = KnowledgeGraph.from_triples([("rejected", "row", "line"), ("line", "row", "rejected")])
    (tmp_path / "q.tsv").write_text("rejected\trow\t?\n", "utf-8")
    summary = answer_file(
        build_answerer(graph), tmp_path / "q.tsv", tmp_path / "out.tsv", Options()
    )
    assert (summary.answered, summary.rejected, summary.rejected_file) == (1, 0, None)


def test_a_job_that_leaves_nothing_to_go_on_with_leaves_no_folder(
    run: Callable[..., BatchSummary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise StoppedError

    monkeypatch.setattr(batch_job, "answer_rows", fail)
    with pytest.raises(StoppedError):
        run(QUESTIONS)
    assert {path.name for path in tmp_path.iterdir()} == {"q.tsv"}


def test_answers_never_take_the_place_of_their_questions(answerer: Answerer, tmp_path: Path):
    queries = tmp_path / "q.tsv"
    queries.write_text("ann\tmother_of\t?\n", "utf-8")
    with pytest.raises(ConfigError, match="another file for the answers"):
        answer_file(answerer, queries, queries, OPTIONS)
    assert queries.read_text("utf-8") == "ann\tmother_of\t?\n"


def test_parts_have_a_bounded_number_of_passes_and_rows():
    def row(head: str | None, relation: str | None, tail: str | None) -> Row:
        return Row(1, "", {"head": head, "relation": relation, "tail": tail})

    relation_questions = [row("a", None, "b")] * 10
    sizes = [len(part) for part in batch_job._cut(iter(relation_questions), 200)]
    assert sizes == [3, 3, 3, 1]  # three of them are more passes than a part has
    others = [row("a", "r", None), Row(2, "{", {}, "no JSON")] * 600
    sizes = [len(part) for part in batch_job._cut(iter(others), 400)]
    assert sizes == [512, 512, 176]


def test_a_part_is_as_large_as_a_chunk_of_the_answerer():
    assert batch_job.PART_ROWS == answerer_module.CHUNK  # else work would be cut in two places


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("content", ["{", "[]", '{"line": 1}', '{"rejected": ""}', "\xff"])
def test_a_damaged_part_is_refused_in_a_sentence(
    run: Callable[..., BatchSummary], tmp_path: Path, content: str
) -> None:
    with pytest.raises(StoppedError):
        run(QUESTIONS, stop_after=2)
    part = tmp_path / "out.jsonl.parts" / "part-00000000.jsonl"
    part.write_bytes(content.encode("latin-1"))
    with pytest.raises(StorageError, match=r"Expected answers in .*part-00000000\.jsonl"):
        run(QUESTIONS)
    part.unlink()
    assert run(QUESTIONS).questions == 5


def test_a_second_writer_of_one_file_is_refused(
    run: Callable[..., BatchSummary], tmp_path: Path
) -> None:
    with (
        sole_process(tmp_path / ".out.jsonl.lock", StorageError("")),
        pytest.raises(StorageError, match=r"out\.jsonl to be free, found another process"),
    ):
        run(QUESTIONS)
    assert {path.name for path in tmp_path.iterdir()} == {"q.tsv"}
    assert run(QUESTIONS).questions == 5
