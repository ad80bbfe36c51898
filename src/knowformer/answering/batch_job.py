"""The batch job: a file of questions to a file of answers; any size, resumable.

Answers are kept in ``OUT.parts``, a file for every so many rows, until all are there; then ``OUT``
appears whole. The same job goes on after a crash. Rows that are no questions, or have a name that
is unknown, are listed in ``OUT.rejected`` with their line and the reason.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from knowformer.answering.answer_files import Record, columns_of, write_answers
from knowformer.answering.answerer import Answerer
from knowformer.answering.query_files import COLUMNS, Row, file_format, measure, read_rows
from knowformer.answering.questions import Question
from knowformer.answering.ranking import Options
from knowformer.answering.responses import AnswersResponse
from knowformer.errors import ConfigError, DataError, StorageError, UserError
from knowformer.storage.atomic_files import (
    LONGEST,
    atomic_path,
    remove_partial_files,
    write_text,
)
from knowformer.storage.locks import sole_process

PART_ROWS = 512
PART_PASSES = 1024  # of the model; a relation question takes two per relation
ANSWERED, REJECTED = {"line", "query", "answers"}, {"line", "rejected", "row"}
HINTS = 100  # unknown names that get near spellings; finding these takes time

Progress = Callable[[int, int], None]


class BatchSummary(BaseModel):
    """What became of a file of questions."""

    model_config = ConfigDict(frozen=True)

    questions: int
    answered: int
    rejected: int
    resumed: int
    """Questions whose answers were there from an earlier start."""
    out: str
    rejected_file: str | None


@dataclass(frozen=True)
class _Job:
    answerer: Answerer
    options: Options
    parts: Path

    def part(self, number: int) -> Path:
        return self.parts / f"part-{number:08d}.jsonl"


def answer_file(
    answerer: Answerer,
    queries: Path,
    target: Path,
    options: Options,
    *,
    resume: bool = True,
    progress: Progress | None = None,
) -> BatchSummary:
    """Answers a file of questions.

    Args:
        answerer: resolves and answers the questions.
        queries: the questions; see ``query_files``.
        target: takes the answers; see ``answer_files``.
        options: how to answer.
        resume: go on with what an earlier start of the same job has left; else start anew.
        progress: counts the questions twice, while they are answered and while they are written.

    Raises:
        UserError: the file cannot be read or the answers cannot be written; rows at fault raise
            nothing.
    """
    kind = file_format(target)
    total, checksum = measure(queries)
    if target.exists() and target.samefile(queries):
        raise ConfigError(
            f"Expected another file for the answers than for the questions, got {target} twice."
        )
    next(read_rows(queries), None)  # refuses columns that are no questions before it writes
    job = _Job(answerer, options, target.with_name(f"{target.name}.parts"))
    identity = {"queries": checksum, "model": answerer.fingerprint(), **asdict(options)}
    refusal = StorageError(
        f"Expected {target} to be free, found another process writing it. Wait until it is done, "
        "or choose another file."
    )
    with sole_process(target.with_name(f".{target.name[:LONGEST]}.lock"), refusal):
        return _answer_file(job, queries, target, identity, total, kind, resume, progress)


def _answer_file(
    job: _Job,
    queries: Path,
    target: Path,
    identity: dict[str, Any],
    total: int,
    kind: str,
    resume: bool,
    progress: Progress | None,
) -> BatchSummary:
    answerer, options = job.answerer, job.options
    is_new = _open_parts(job, target, identity, resume=resume)
    try:
        questions, resumed = _answer_parts(job, queries, total, progress)
    except BaseException:
        if is_new and not any(job.parts.glob("part-*")):
            shutil.rmtree(job.parts, ignore_errors=True)  # nothing to go on with
        raise
    columns = shown_columns(answerer, options)
    rejected_file = target.with_name(f"{target.name}.rejected")
    rejected = write_rejected(_records(job, rejected=True), rejected_file)
    with atomic_path(target) as temporary:
        answered = _counted(_records(job, rejected=False), questions - rejected, progress)
        write_answers(temporary, answered, kind=kind, columns=columns)
    shutil.rmtree(job.parts, ignore_errors=True)
    return BatchSummary(
        questions=questions,
        answered=questions - rejected,
        rejected=rejected,
        resumed=resumed,
        out=str(target),
        rejected_file=str(rejected_file) if rejected else None,
    )


def shown_columns(answerer: Answerer, options: Options) -> tuple[str, ...]:
    """Returns the columns of tables of answers."""
    return columns_of(
        has_labels=bool(answerer.labels),
        has_spread=options.samples > 1,
        has_typical=options.typical,
    )


def _open_parts(job: _Job, target: Path, identity: dict[str, Any], *, resume: bool) -> bool:
    """Makes the folder of parts and returns True, or takes it up again if it is of this job."""
    manifest = job.parts / "manifest.json"
    sizes = {"part_rows": PART_ROWS, "part_passes": PART_PASSES}
    wanted = json.dumps({**sizes, **identity}, indent=2)
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        if resume and manifest.is_file() and manifest.read_text("utf-8") == wanted:
            remove_partial_files(job.parts)
            return False
        if job.parts.exists():
            if not manifest.is_file() and any(job.parts.iterdir()):
                raise FileExistsError(None, f"{job.parts} holds something else")
            shutil.rmtree(job.parts)
        job.parts.mkdir(parents=True)
    except OSError as error:
        raise StorageError(
            f"Expected to write {target}, got '{error.strerror or error}'. Choose another file."
        ) from error
    write_text(manifest, wanted)
    return True


def _answer_parts(
    job: _Job, queries: Path, total: int, progress: Progress | None
) -> tuple[int, int]:
    """Answers what is not there yet; returns how many rows there are, and were there before."""
    done = resumed = num_rejected = 0
    parts = _cut(read_rows(queries), len(job.answerer.graph.relations))
    for number, chunk in enumerate(parts):
        if job.part(number).is_file():
            resumed += len(chunk)
            # As if there had been no crash: later rows get no more hints than without one.
            num_rejected += sum(1 for _ in _read_part(job.part(number), rejected=True))
        else:
            hints = max(0, HINTS - num_rejected)
            records = answer_rows(job.answerer, job.options, chunk, hints=hints)
            num_rejected += sum("rejected" in record for record in records)
            lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            write_text(job.part(number), lines)
        done += len(chunk)
        if progress is not None:
            progress(done, max(total, done))
    if done == 0:
        raise DataError(f"Expected questions in {queries}, got an empty file.")
    return done, resumed


def _cut(rows: Iterator[Row], num_relations: int) -> Iterator[list[Row]]:
    """Cuts rows into parts of bounded work, so that little is lost by a crash; always alike."""
    part: list[Row] = []
    passes = 0
    for row in rows:
        part.append(row)
        passes += num_passes(row, num_relations)
        if len(part) == PART_ROWS or passes >= PART_PASSES:
            yield part
            part, passes = [], 0
    if part:
        yield part


def num_passes(row: Row, num_relations: int) -> int:
    """Returns how many passes of the model a question takes, if it shares none."""
    asks_relation = row.parts.get("head") and row.parts.get("tail")
    return 2 * num_relations if asks_relation else 1


def answer_rows(
    answerer: Answerer, options: Options, rows: Iterable[Row], *, hints: int
) -> list[Record]:
    """Answers rows; those that cannot be asked have the keys of ``REJECTED``.

    Args:
        answerer: resolves and answers the questions.
        options: how to answer.
        rows: the questions.
        hints: how many of those that are rejected get near spellings.
    """
    records: list[Record] = []
    questions: list[Question] = []
    for row in rows:
        try:
            if row.fault is not None:
                raise DataError(row.fault)
            if hints <= 0:
                _check_names(answerer, row)
            questions.append(answerer.question(**row.parts))
            records.append({"line": row.line})
        except UserError as error:
            hints -= 1
            records.append({"line": row.line, "rejected": str(error), "row": row.text})
    answers = answerer.stream(questions, options)
    for record in records:
        if "rejected" not in record:
            record |= AnswersResponse.of(next(answers)).content()
    return records


def _check_names(answerer: Answerer, row: Row) -> None:
    """Refuses unknown names at once, without looking for near ones."""
    graph, labels = answerer.graph, answerer.labels
    for column in COLUMNS:
        name = row.parts.get(column)
        is_relation = column == "relation"
        has = labels.has_relation if is_relation else labels.has_entity
        if name is not None and not has(name, graph.relations if is_relation else graph.entities):
            raise DataError(f"Expected the name of a known {column}, got {name!r}.")


def _records(job: _Job, *, rejected: bool) -> Iterator[Record]:
    """Yields what was rejected or what was answered, in the order of the questions."""
    number = 0
    while job.part(number).is_file():
        yield from _read_part(job.part(number), rejected=rejected)
        number += 1


def _read_part(part: Path, *, rejected: bool) -> Iterator[Record]:
    wanted = REJECTED if rejected else ANSWERED
    try:
        with part.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                # Few lines are rejections, and reading JSON takes time; a name may be the word too.
                if rejected and '"rejected"' not in line:
                    continue
                record: Record = json.loads(line)
                if ("rejected" in record) is rejected:
                    if not record.keys() >= wanted:
                        raise ValueError("a line that is no answer")
                    yield record
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(
            f"Expected answers in {part}, got: {error}. The file is damaged; remove it, and the "
            "same command answers these questions again."
        ) from None


def _counted(records: Iterator[Record], total: int, progress: Progress | None) -> Iterator[Record]:
    for number, record in enumerate(records, start=1):
        yield record
        if progress is not None and (number % 5000 == 0 or number == total):
            progress(number, total)


def write_rejected(records: Iterable[Record], path: Path) -> int:
    """Lists rejected rows; a list from an earlier start goes."""
    count = 0
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write("line\treason\trow\n")
        for record in records:
            count += 1
            shown = record["row"].replace("\t", "\\t")
            file.write(f"{record['line']}\t{record['rejected']}\t{shown}\n")
    if count == 0:
        path.unlink()
    return count
