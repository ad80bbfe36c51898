"""The folder job: a file of questions to a folder of answers, shard by shard; millions of them.

A shard is a piece of the file, so many lines of it. Its answers appear whole, and then its receipt:
a shard with a receipt is done. So the job goes on after a kill, on any engine, on one machine or
many; whatever the order and the engine, the bytes are the same.

    FOLDER/manifest.json             what the job is: questions, model, options, size of a shard
    FOLDER/answers-00000000.jsonl    the answers of a shard, in the order of its questions
    FOLDER/receipts/00000000.json    how many questions it had, and the rows that cannot be asked
    FOLDER/rejected.tsv              at the end: all those rows, with line and reason
    FOLDER/summary.json              at the end: the job is done
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from errno import ENOTDIR
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, ValidationError

from knowformer.answering.answer_files import write_answers
from knowformer.answering.answerer import Answerer
from knowformer.answering.batch_job import (
    BatchSummary,
    answer_rows,
    num_passes,
    shown_columns,
    write_rejected,
)
from knowformer.answering.query_files import Span, cut, measure, read_rows
from knowformer.answering.ranking import Options
from knowformer.choices import AnswerFormat
from knowformer.errors import ConfigError, DataError, StorageError, require_package
from knowformer.storage.atomic_files import atomic_path, remove_partial_files, write_text
from knowformer.storage.locks import sole_process

SHARD_PASSES = 4096  # of the model, by the first rows: what a killed worker loses at most
LOOKED_AT = 1000  # rows that say how many passes a question takes
HINTS = 10  # unknown names of a shard that get near spellings; finding these takes time

Progress = Callable[[int, int], None]


class Manifest(BaseModel):
    """What a job is; one with another manifest is another job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    knowformer: str
    """The version: another one may answer with other bits."""
    queries: str
    """A checksum of the questions."""
    model: str
    """A checksum of the weights, the graph and all else that answers depend on."""
    k: int
    new_only: bool
    samples: int
    typical: bool
    among: tuple[int, ...] | None
    format: AnswerFormat
    shard_rows: int


class Rejected(BaseModel):
    """A row that cannot be asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: int
    rejected: str
    """The reason."""
    row: str


class Receipt(BaseModel):
    """What became of a shard; it is written when its answers are there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    questions: int
    bytes: int
    """Of the file of answers."""
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True)
class FolderJob:
    """What it takes to answer any shard."""

    answerer: Answerer
    options: Options
    queries: Path
    folder: Path
    format: AnswerFormat
    shard_rows: int

    def number(self, span: Span) -> int:
        """Returns a shard's number."""
        return (span.first - 1) // self.shard_rows

    def answers(self, number: int) -> Path:
        """Returns the file of a shard's answers."""
        return self.folder / f"answers-{number:08d}.{self.format}"

    def receipt(self, number: int) -> Path:
        """Returns the file of its receipt."""
        return self.folder / "receipts" / f"{number:08d}.json"

    def read_receipt(self, number: int) -> Receipt | None:
        """Returns the receipt of a shard; None: it is not done, or its answers are not there."""
        try:
            receipt = Receipt.model_validate_json(self.receipt(number).read_bytes())
            is_whole = self.answers(number).stat().st_size == receipt.bytes
        except (OSError, ValidationError):
            return None
        return receipt if is_whole else None


@runtime_checkable
class ShardEngine(Protocol):
    """Answers shards, in this process or elsewhere."""

    def answer(self, job: FolderJob, spans: Sequence[Span]) -> Iterator[int]:
        """Answers shards in any order; yields of each, when it is done, how many questions it had.

        Raises:
            UserError: a shard cannot be read or written.
        """
        ...


class LocalEngine:
    """Answers one shard after the other in this process."""

    def answer(self, job: FolderJob, spans: Sequence[Span]) -> Iterator[int]:
        """Answers shards in their order; see ``ShardEngine``."""
        return (answer_shard(job, span) for span in spans)


def answer_shard(job: FolderJob, span: Span) -> int:
    """Answers a shard unless it is done, and returns how many questions it had."""
    number = job.number(span)
    receipt = job.read_receipt(number)
    if receipt is not None:
        return receipt.questions
    records = answer_rows(job.answerer, job.options, read_rows(job.queries, span), hints=HINTS)
    answered = [record for record in records if "rejected" not in record]
    target = job.answers(number)
    columns = shown_columns(job.answerer, job.options)
    with atomic_path(target) as temporary:
        write_answers(temporary, answered, kind=job.format, columns=columns)
    receipt = Receipt(
        questions=len(records),
        bytes=target.stat().st_size,
        rejected=tuple(Rejected(**record) for record in records if "rejected" in record),
    )
    write_text(job.receipt(number), json.dumps(receipt.model_dump()))
    return receipt.questions


def answer_folder(
    answerer: Answerer,
    queries: Path,
    folder: Path,
    options: Options,
    *,
    engine: ShardEngine | None = None,
    format: AnswerFormat = "jsonl",  # noqa: A002 - what it is called on the command line
    shard_rows: int | None = None,
    progress: Progress | None = None,
) -> BatchSummary:
    """Answers a file of questions into a folder; the same call goes on after a kill.

    Args:
        answerer: resolves and answers the questions.
        queries: the questions; see ``query_files``.
        folder: takes the answers; new, empty, or begun by the same job.
        options: how to answer.
        engine: where to answer; none: in this process.
        format: of the answers.
        shard_rows: lines of the file that are answered and written together; chosen by the kind of
            the first questions if not given.
        progress: called with questions done and in all.

    Raises:
        UserError: the file cannot be read, the folder is of another job or cannot be written; rows
            at fault raise nothing.
    """
    if format == "parquet":
        require_package("pyarrow", extra="frames", purpose="write Parquet")
    total, checksum = measure(queries)
    size = _chosen_size(queries, shard_rows, len(answerer.graph.relations))
    job = FolderJob(answerer, options, queries, folder, format, size)
    manifest = Manifest(
        knowformer=version("knowformer"),
        queries=checksum,
        model=answerer.fingerprint(),
        format=format,
        shard_rows=size,
        **asdict(options),
    )
    _open_folder(folder, manifest)
    refusal = StorageError(
        f"Expected {folder} to be free, found another process writing it. Wait until it is done, "
        "or choose another folder."
    )
    with sole_process(folder / ".lock", refusal):
        return _answer(job, engine or LocalEngine(), total, progress)


def _chosen_size(queries: Path, shard_rows: int | None, num_relations: int) -> int:
    """Returns how many rows a shard has; from the questions alone, so it is the same every time."""
    if shard_rows is not None and shard_rows < 1:
        raise ConfigError(f"Expected a positive number of rows in a shard, got {shard_rows}.")
    passes = [num_passes(row, num_relations) for row in islice(read_rows(queries), LOOKED_AT)]
    if not passes:
        raise DataError(f"Expected questions in {queries}, got an empty file.")
    return shard_rows or max(1, SHARD_PASSES * len(passes) // sum(passes))


def _open_folder(folder: Path, wanted: Manifest) -> None:
    """Makes the folder with its manifest, or sees that it is of this job."""
    path = folder / "manifest.json"
    try:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(ENOTDIR, "it is a file")
        folder.mkdir(parents=True, exist_ok=True)
        remove_partial_files(folder)
        if not path.exists() and any(each.name != ".lock" for each in folder.iterdir()):
            raise FileExistsError(None, "it holds something else")
        found = Manifest.model_validate_json(path.read_bytes()) if path.exists() else None
    except OSError as error:
        raise StorageError(
            f"Expected to write answers to {folder}, got '{error.strerror or error}'. Choose "
            "another folder."
        ) from error
    except ValidationError:
        raise StorageError(
            f"Expected the manifest of a job in {path}, got something else. Choose another folder."
        ) from None
    if found is None:
        write_text(path, wanted.model_dump_json(indent=2) + "\n")
    elif found != wanted:
        fields = Manifest.model_fields
        differ = [name for name in fields if getattr(found, name) != getattr(wanted, name)]
        raise StorageError(
            f"Expected {folder} to be new or begun by this job, found answers of another, which "
            f"differs in: {', '.join(differ)}. Choose another folder, or remove this one."
        )


def _answer(
    job: FolderJob, engine: ShardEngine, total: int, progress: Progress | None
) -> BatchSummary:
    spans = cut(job.queries, job.shard_rows)
    receipts = {job.number(span): job.read_receipt(job.number(span)) for span in spans}
    resumed = sum(receipt.questions for receipt in receipts.values() if receipt is not None)
    done = resumed
    for questions in engine.answer(job, [s for s in spans if receipts[job.number(s)] is None]):
        done += questions
        if progress is not None:
            progress(done, max(total, done))
    for folder in (job.folder, job.folder / "receipts"):
        remove_partial_files(folder)  # of workers that were killed
    return _finish(job, len(spans), resumed)


def _finish(job: FolderJob, num_shards: int, resumed: int) -> BatchSummary:
    """Sees that every shard is there, lists what was rejected, and says that the job is done."""
    missing = [n for n in range(num_shards) if job.read_receipt(n) is None]
    if missing:
        raise StorageError(
            f"Expected the answers of {num_shards:,} shards in {job.folder}, found those of "
            f"{num_shards - len(missing):,}. It must be one folder for all machines; the same "
            "command goes on."
        )
    counts = {"questions": 0}

    def rejected_rows() -> Iterator[dict[str, int | str]]:
        for number in range(num_shards):
            receipt = job.read_receipt(number)
            assert receipt is not None
            counts["questions"] += receipt.questions
            yield from (row.model_dump() for row in receipt.rejected)

    listed = job.folder / "rejected.tsv"
    rejected = write_rejected(rejected_rows(), listed)
    summary = BatchSummary(
        questions=counts["questions"],
        answered=counts["questions"] - rejected,
        rejected=rejected,
        resumed=resumed,
        out=str(job.folder),
        rejected_file=str(listed) if rejected else None,
    )
    kept = summary.model_dump(exclude={"out", "resumed", "rejected_file"})
    write_text(job.folder / "summary.json", json.dumps({**kept, "shards": num_shards}) + "\n")
    return summary
