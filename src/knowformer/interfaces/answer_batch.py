"""A file of questions to a file of answers: any size, resumable, bad rows listed apart.

Answers are kept in ``OUT.parts``, a file for every so many rows, until all are there; then ``OUT``
appears whole. The same command goes on after a crash. Rows that are no questions, or have a name
that is unknown, are listed in ``OUT.rejected`` with their line and the reason.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from knowformer.answering.questions import Question
from knowformer.errors import ConfigError, DataError, StorageError, UserError
from knowformer.interfaces.answer_files import Record, columns_of, output_format, write_answers
from knowformer.interfaces.query_files import COLUMNS, Row, measure, read_rows
from knowformer.interfaces.schemas import answers_response
from knowformer.reasoner import Reasoner
from knowformer.storage.atomic_files import atomic_path, remove_partial_files, write_text

PART_ROWS = 512
PART_PASSES = 1024  # of the model; a relation question takes one per relation
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

    def sentence(self) -> str:
        """Returns the summary for people."""
        said = f"Answered {self.answered:,} of {self.questions:,} questions: {self.out}"
        if self.resumed:
            said += f" ({self.resumed:,} of them before)"
        if self.rejected:
            said += f"\nRejected {self.rejected:,}, with line and reason: {self.rejected_file}"
        return said


@dataclass(frozen=True)
class _Job:
    reasoner: Reasoner
    options: dict[str, Any]
    parts: Path

    def part(self, number: int) -> Path:
        return self.parts / f"part-{number:08d}.jsonl"


def answer_file(
    reasoner: Reasoner,
    queries: Path,
    target: Path,
    *,
    k: int = 10,
    new_only: bool = False,
    samples: int = 1,
    progress: Progress | None = None,
) -> BatchSummary:
    """Answers a file of questions; progress counts them twice, while answering and while writing.

    Raises:
        UserError: the file cannot be read or the answers cannot be written; rows at fault raise
            nothing.
    """
    kind = output_format(target)
    total, checksum = measure(queries)
    if target.exists() and target.samefile(queries):
        raise ConfigError(f"Expected --out to be another file than --queries, got {target} twice.")
    options: dict[str, Any] = {"k": k, "new_only": new_only, "samples": samples}
    reasoner.answer_many([], **options)  # refuses impossible options before anything is written
    next(read_rows(queries), None)  # and columns that are no questions
    job = _Job(reasoner, options, target.with_name(f"{target.name}.parts"))
    is_new = _open_parts(
        job, target, {"queries": checksum, "model": _identify(reasoner), **options}
    )
    try:
        questions, resumed = _answer_parts(job, queries, total, progress)
    except BaseException:
        if is_new and not any(job.parts.glob("part-*")):
            shutil.rmtree(job.parts, ignore_errors=True)  # nothing to go on with
        raise
    columns = columns_of(has_labels=bool(reasoner.labels), has_spread=samples > 1)
    rejected_file = target.with_name(f"{target.name}.rejected")
    rejected = _write_rejected(job, rejected_file)
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


def _open_parts(job: _Job, target: Path, identity: dict[str, Any]) -> bool:
    """Makes the folder of parts, or takes it up again if it is of the same job."""
    manifest = job.parts / "manifest.json"
    sizes = {"part_rows": PART_ROWS, "part_passes": PART_PASSES}
    wanted = json.dumps({**sizes, **identity}, indent=2)
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        if manifest.is_file() and manifest.read_text("utf-8") == wanted:
            remove_partial_files(job.parts)
            return False
        if job.parts.exists():
            if not manifest.is_file() and any(job.parts.iterdir()):
                raise FileExistsError(None, f"{job.parts} holds something else")
            shutil.rmtree(job.parts)
        job.parts.mkdir(parents=True)
    except OSError as error:
        raise StorageError(
            f"Expected to write {target}, got '{error.strerror or error}'. Choose another --out."
        ) from error
    write_text(manifest, wanted)
    return True


def _identify(reasoner: Reasoner) -> str:
    """Returns a checksum of all that answers depend on besides the questions and options."""
    digest = hashlib.sha256((reasoner.folder / "model.safetensors").read_bytes())
    calibration = reasoner.calibration
    digest.update(b"" if calibration is None else calibration.model_dump_json().encode())
    digest.update(reasoner.graph.facts.numpy().tobytes())
    digest.update("\n".join(reasoner.graph.entities).encode())
    for labels in (reasoner.labels.entities, reasoner.labels.relations):
        digest.update(json.dumps(sorted(labels.items())).encode())
    return digest.hexdigest()


def _answer_parts(
    job: _Job, queries: Path, total: int, progress: Progress | None
) -> tuple[int, int]:
    """Answers what is not there yet; returns how many rows there are, and were there before."""
    done = resumed = num_rejected = 0
    parts = _cut(read_rows(queries), len(job.reasoner.graph.relations))
    for number, chunk in enumerate(parts):
        if job.part(number).is_file():
            resumed += len(chunk)
        else:
            records = _answer_rows(job, chunk, num_rejected)
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
        asks_relation = row.parts.get("head") and row.parts.get("tail")
        passes += num_relations if asks_relation else 1
        if len(part) == PART_ROWS or passes >= PART_PASSES:
            yield part
            part, passes = [], 0
    if part:
        yield part


def _answer_rows(job: _Job, rows: list[Row], num_rejected: int) -> list[Record]:
    records: list[Record] = []
    questions: list[Question] = []
    for row in rows:
        try:
            if row.fault is not None:
                raise DataError(row.fault)
            if num_rejected >= HINTS:
                _check_names(job.reasoner, row)
            questions.append(job.reasoner.question(**row.parts))
            records.append({"line": row.line})
        except UserError as error:
            num_rejected += 1
            records.append({"line": row.line, "rejected": str(error), "row": row.text})
    answers = iter(job.reasoner.answer_many(questions, **job.options))
    for record in records:
        if "rejected" not in record:
            record |= answers_response(next(answers))
    return records


def _check_names(reasoner: Reasoner, row: Row) -> None:
    """Refuses unknown names at once, without looking for near ones."""
    graph, labels = reasoner.graph, reasoner.labels
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
        with job.part(number).open(encoding="utf-8", newline="\n") as file:
            yield from (json.loads(line) for line in file if is_rejection(line) is rejected)
        number += 1


def is_rejection(line: str) -> bool:
    """Tells without reading the whole line; names cannot mislead, as they come later."""
    return line.partition(",")[2].startswith(' "rejected"')


def _counted(records: Iterator[Record], total: int, progress: Progress | None) -> Iterator[Record]:
    for number, record in enumerate(records, start=1):
        yield record
        if progress is not None and (number % 5000 == 0 or number == total):
            progress(number, total)


def _write_rejected(job: _Job, path: Path) -> int:
    """Lists rejected rows; a list from an earlier start goes."""
    count = 0
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write("line\treason\trow\n")
        for record in _records(job, rejected=True):
            count += 1
            shown = record["row"].replace("\t", "\\t")
            file.write(f"{record['line']}\t{record['rejected']}\t{shown}\n")
    if count == 0:
        path.unlink()
    return count
