"""The folder job: shards, receipts and the manifest, interrupted and taken up again."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from knowformer.answering import folder_job
from knowformer.answering.answerer import Answerer
from knowformer.answering.batch_job import BatchSummary, answer_file
from knowformer.answering.folder_job import FolderJob, LocalEngine, answer_folder, answer_shard
from knowformer.answering.query_files import Span
from knowformer.answering.ranking import Options
from knowformer.errors import ConfigError, DataError, StorageError
from knowformer.storage.locks import sole_process

OPTIONS = Options(k=2)
QUESTIONS = ["ann\tmother_of\t?", "?\tmother_of\tbob", "bad", "ann\t?\tdan", "nobody\tmother_of\t?"]

Answer = Callable[..., BatchSummary]


class StoppedError(Exception):
    """What ends a job in these tests."""


class Backwards:
    """An engine with another order, which says what it was asked for, and may stop."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.asked: list[int] = []
        self._stop_after = stop_after

    def answer(self, job: FolderJob, spans: Sequence[Span]) -> Iterator[int]:
        for span in reversed(spans):
            if len(self.asked) == self._stop_after:
                raise StoppedError
            self.asked.append(job.number(span))
            yield answer_shard(job, span)


@pytest.fixture
def run(answerer: Answerer, tmp_path: Path) -> Answer:
    """Answers ``q.tsv`` into the folder ``out``, two rows a shard."""

    def job(lines: Sequence[str] = QUESTIONS, *, out: str = "out", **more: object) -> BatchSummary:
        (tmp_path / "q.tsv").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        options = more.pop("options", OPTIONS)
        given = {"shard_rows": 2, **more}
        return answer_folder(answerer, tmp_path / "q.tsv", tmp_path / out, options, **given)

    return job


def content(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_shards_together_are_the_file_of_answers(
    run: Answer, answerer: Answerer, tmp_path: Path
) -> None:
    summary = run()
    assert (summary.questions, summary.answered, summary.rejected, summary.resumed) == (5, 3, 2, 0)
    assert summary.rejected_file == str(tmp_path / "out" / "rejected.tsv")
    answer_file(answerer, tmp_path / "q.tsv", tmp_path / "one.jsonl", OPTIONS)
    shards = sorted((tmp_path / "out").glob("answers-*.jsonl"))
    assert [shard.name for shard in shards] == [f"answers-0000000{n}.jsonl" for n in range(3)]
    assert b"".join(map(Path.read_bytes, shards)) == (tmp_path / "one.jsonl").read_bytes()
    listed = (tmp_path / "out" / "rejected.tsv").read_bytes()
    assert listed == (tmp_path / "one.jsonl.rejected").read_bytes()
    said = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert said == {"questions": 5, "answered": 3, "rejected": 2, "shards": 3}


@pytest.mark.parametrize("stop_after", [0, 1, 2])
def test_a_job_goes_on_with_another_engine_and_ends_with_the_same_bytes(
    stop_after: int, run: Answer, tmp_path: Path
) -> None:
    run(out="quiet")
    with pytest.raises(StoppedError):
        run(engine=Backwards(stop_after))
    assert not (tmp_path / "out" / "summary.json").exists()
    steps: list[tuple[int, int]] = []
    summary = run(engine=LocalEngine(), progress=lambda *step: steps.append(step))
    assert summary.resumed == [0, 1, 3][stop_after]  # the last shard has one question
    assert steps[-1] == (5, 5)
    assert content(tmp_path / "out") == content(tmp_path / "quiet")


def test_what_is_done_is_not_answered_again(run: Answer, tmp_path: Path) -> None:
    run()
    before = content(tmp_path / "out")
    again = Backwards()
    assert run(engine=again).resumed == 5
    assert again.asked == []
    assert content(tmp_path / "out") == before


@pytest.mark.parametrize("harm", ["no answers", "half the answers", "no receipt", "half a receipt"])
def test_a_shard_that_is_not_whole_is_answered_again(
    harm: str, run: Answer, tmp_path: Path
) -> None:
    run()
    before = content(tmp_path / "out")
    kind = "receipts/00000001.json" if "receipt" in harm else "answers-00000001.jsonl"
    damaged = tmp_path / "out" / kind
    whole = damaged.read_bytes()
    damaged.unlink() if harm.startswith("no") else damaged.write_bytes(whole[: len(whole) // 2])
    engine = Backwards()
    assert run(engine=engine).resumed == 3
    assert engine.asked == [1]
    assert content(tmp_path / "out") == before


def test_what_a_killed_worker_left_half_written_goes(run: Answer, tmp_path: Path) -> None:
    left = [tmp_path / "out" / name for name in (".a.1.partial", "receipts/.b.2.partial")]

    class Killed(LocalEngine):
        def answer(self, job: FolderJob, spans: Sequence[Span]) -> Iterator[int]:
            for path in left:
                path.parent.mkdir(exist_ok=True)
                path.write_text("half", "utf-8")
            yield from super().answer(job, spans)

    run(engine=Killed())
    assert not any(path.exists() for path in left)


def test_an_engine_that_leaves_out_a_shard_is_found_out(run: Answer, tmp_path: Path) -> None:
    class Lazy(LocalEngine):
        def answer(self, job: FolderJob, spans: Sequence[Span]) -> Iterator[int]:
            return super().answer(job, spans[1:])

    with pytest.raises(StorageError, match=r"answers of 3 shards in .*out, found those of 2"):
        run(engine=Lazy())
    assert not (tmp_path / "out" / "summary.json").exists()
    assert run().questions == 5


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"options": Options(k=3)}, "differs in: k"),
        ({"shard_rows": 3}, "differs in: shard_rows"),
        ({"format": "tsv"}, "differs in: format"),
        ({"lines": QUESTIONS[1:]}, "differs in: queries"),
    ],
)
def test_the_folder_of_another_job_is_refused_and_left_alone(
    changed: dict[str, object], says: str, run: Answer, tmp_path: Path
) -> None:
    run()
    before = content(tmp_path / "out")
    with pytest.raises(StorageError, match=says):
        run(**changed)
    assert content(tmp_path / "out") == before


def test_folders_that_are_none_of_a_job_are_refused(run: Answer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    with pytest.raises(StorageError, match="it is a file"):
        run(out="file")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine", "utf-8")
    with pytest.raises(StorageError, match="holds something else"):
        run(out="mine")
    (tmp_path / "mine" / "manifest.json").write_text("{}", "utf-8")
    with pytest.raises(StorageError, match="manifest of a job"):
        run(out="mine")
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"thesis.txt", "manifest.json"}


def test_a_second_job_in_one_folder_is_refused(run: Answer, tmp_path: Path) -> None:
    run()
    with (
        sole_process(tmp_path / "out" / ".lock", StorageError("")),
        pytest.raises(StorageError, match="out to be free, found another process"),
    ):
        run()
    assert run().resumed == 5


def test_nothing_to_ask_and_no_size_are_refused(run: Answer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty file"):
        run(["", ""])
    with pytest.raises(ConfigError, match="rows in a shard, got 0"):
        run(shard_rows=0)
    assert not (tmp_path / "out").exists()


def test_a_shard_has_a_bounded_number_of_passes(
    run: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_job, "SHARD_PASSES", 8)  # the graph has four relations

    def size(lines: list[str], out: str) -> int:
        run(lines, out=out, shard_rows=None)
        return json.loads((tmp_path / out / "manifest.json").read_text("utf-8"))["shard_rows"]

    assert size(["ann\tmother_of\t?"] * 9, "tails") == 8
    assert size(["ann\t?\tbob"] * 9, "relations") == 1


def test_every_shard_gives_so_many_hints(
    run: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_job, "HINTS", 1)
    run(["annn\tmother_of\t?"] * 4)
    lines = (tmp_path / "out" / "rejected.tsv").read_text("utf-8").splitlines()[1:]
    assert ["Did you mean" in line for line in lines] == [True, False, True, False]


@pytest.mark.parametrize("kind", ["tsv", "csv", "parquet"])
def test_shards_may_be_tables(kind: str, run: Answer, tmp_path: Path) -> None:
    run(format=kind)
    shards = sorted((tmp_path / "out").glob(f"answers-*.{kind}"))
    if kind == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        counts = [parquet.read_table(shard).num_rows for shard in shards]
    else:
        counts = [len(shard.read_text("utf-8").splitlines()) - 1 for shard in shards]
    assert counts == [4, 2, 0]
