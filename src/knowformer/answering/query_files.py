"""Files of questions, read row by row: TSV, CSV, JSON lines or Parquet, by the name's ending.

TSV     head<TAB>relation<TAB>tail with ``?`` for what is asked, or two columns head<TAB>relation;
        or a first line that names the columns (head, relation, tail, any two or all of them)
CSV     the same with commas, and quotes around names that hold one
JSONL   an object a line with head, relation and tail; what is asked is null or left out
Parquet columns head, relation and tail of text; what is asked is null or left out
"""

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from knowformer.answering.questions import ASKED
from knowformer.data.readers.parquet import is_text, open_parquet, whole_parquet
from knowformer.data.readers.rows import shorten
from knowformer.errors import ConfigError, DataError, require_package
from knowformer.storage.plain_files import open_plain

COLUMNS = ("head", "relation", "tail")
ENDINGS = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class Row:
    """One question of a file; ``fault`` says why it cannot be read as one."""

    line: int
    text: str
    parts: dict[str, str | None]
    fault: str | None = None


@dataclass(frozen=True)
class Span:
    """A piece of a file of questions: lines, or rows of Parquet, counted from 1."""

    first: int = 1
    count: int | None = None
    """How many at most; None: all."""
    offset: int = 0
    """Bytes of the file before it; of text alone."""

    @property
    def end(self) -> int | float:
        """The first line that is no longer in it."""
        return inf if self.count is None else self.first + self.count


WHOLE = Span()


def file_format(path: Path) -> str:
    """Returns tsv, csv, jsonl or parquet.

    Raises:
        ConfigError: the ending is none of those.
        MissingPackageError: it is Parquet, and pyarrow is not installed.
    """
    kind = ENDINGS.get(path.suffix.lower())
    if kind is None:
        raise ConfigError(
            f"Expected a file that ends in .tsv, .csv, .jsonl or .parquet, got {path.name!r}."
        )
    if kind == "parquet":
        require_package("pyarrow", extra="frames", purpose=f"read or write {path.name}")
    return kind


def read_rows(path: Path, span: Span = WHOLE) -> Iterator[Row]:
    """Yields the questions of a file, or of a piece of it, in its order; blank lines passed over.

    Raises:
        DataError: the file cannot be read, or has not the columns or types of questions.
    """
    kind = file_format(path)
    if kind == "parquet":
        yield from _read_parquet(path, span)
    elif kind == "jsonl":
        yield from _read_json_lines(path, span)
    else:
        yield from _read_table(path, kind, span)


def cut(path: Path, size: int) -> list[Span]:
    """Cuts a file into pieces of so many lines, or rows of Parquet; the last may have fewer.

    Raises:
        DataError: the file is missing or not readable.
    """
    if file_format(path) == "parquet":
        num_rows = open_parquet(path).metadata.num_rows
        return [Span(first, size) for first in range(1, num_rows + 1, size)]
    spans: list[Span] = []
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if number % size == 0:
                spans.append(Span(number + 1, size, offset))
            offset += len(line)
    return spans


def measure(path: Path) -> tuple[int, str]:
    """Returns about how many rows a file has, and a checksum of its content.

    Raises:
        DataError: the file is missing, not readable or empty.
    """
    digest, lines = hashlib.sha256(), 0
    try:
        with open_plain(path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
                lines += block.count(b"\n")
    except FileNotFoundError:
        raise DataError(f"Expected a file of questions at {path}, found none.") from None
    except OSError as error:
        raise DataError(f"Expected a readable file at {path}, got '{error.strerror}'.") from error
    if file_format(path) == "parquet":
        lines = open_parquet(path).metadata.num_rows
    return max(1, lines), digest.hexdigest()


def _lines(path: Path, span: Span = WHOLE) -> Iterator[tuple[int, str, str | None]]:
    """Yields number, text and fault of each line that is not blank."""
    with path.open("rb") as file:
        file.seek(span.offset)
        for number, raw in enumerate(islice(file, span.count), start=span.first):
            content = raw.removesuffix(b"\n").removesuffix(b"\r")
            if number == 1:
                content = content.removeprefix(b"\xef\xbb\xbf")
            if not content.strip():
                continue
            try:
                yield number, content.decode("utf-8"), None
            except UnicodeDecodeError:
                shown = content.decode("utf-8", errors="backslashreplace")
                yield number, shown, "Expected UTF-8 text, got other bytes."


def _read_table(path: Path, kind: str, span: Span) -> Iterator[Row]:
    mark = "commas" if kind == "csv" else "tabs"
    header, columns = _read_header(path, kind)
    for number, text, fault in _lines(path, span):
        if number == header:
            continue
        fields, broken = _fields(text, kind)
        fault = fault or broken
        counts = {2, 3} if columns is COLUMNS else {len(columns)}
        if fault is None and len(fields) not in counts:
            wanted = " or ".join(map(str, sorted(counts)))
            fault = f"Expected {wanted} columns with {mark} between them, got {len(fields)}."
        yield Row(number, text, _asked(dict(zip(columns, fields, strict=False))), fault)


def _read_header(path: Path, kind: str) -> tuple[int | None, Sequence[str]]:
    """Returns the line that names the columns, if there is one, and the columns."""
    for number, text, _ in _lines(path):
        named = [field.strip().lower() for field in _fields(text, kind)[0]]
        if len(named) > 1 and len(set(named)) == len(named) and set(named) <= set(COLUMNS):
            return number, named
        break
    return None, COLUMNS


def _fields(text: str, kind: str) -> tuple[list[str], str | None]:
    """Returns the columns of a line, and what is wrong with it."""
    if kind != "csv":
        return text.split("\t"), None
    try:
        return next(csv.reader([text])), None
    except csv.Error as error:
        return [text], f"Expected comma-separated text, got: {error}."


def _read_json_lines(path: Path, span: Span) -> Iterator[Row]:
    for number, text, fault in _lines(path, span):
        content: Any = {}
        if fault is None:
            try:
                content = json.loads(text)
            except (ValueError, RecursionError) as error:
                fault = f"Expected a JSON object, got: {error}."
        if fault is None and not isinstance(content, dict):
            fault = f"Expected a JSON object, got {type(content).__name__}."
        parts = content if isinstance(content, dict) else {}
        for name in COLUMNS:
            if fault is None and not isinstance(parts.get(name), str | None):
                fault = f"Expected a name as {name}, got {parts[name]!r}."
        yield Row(number, text, _asked(parts) if fault is None else {}, fault)


def _read_parquet(path: Path, span: Span) -> Iterator[Row]:
    from pyarrow.types import is_null

    file = open_parquet(path)
    schema = file.schema_arrow
    present = [name for name in COLUMNS if name in schema.names]
    if len(present) < 2:
        raise DataError(
            f"Expected at least two of the columns head, relation and tail in {path}, got "
            f"{shorten(', '.join(schema.names)) or 'none'}."
        )
    for name in present:
        if schema.names.count(name) > 1:
            raise DataError(f"Expected one column {name!r} in {path}, found several.")
        kind = schema.field(name).type
        if not is_text(kind) and not is_null(kind):
            raise DataError(f"Expected text in column {name!r} of {path}, got {kind}.")
    groups, number = _row_groups(file.metadata, span)
    with whole_parquet(path):
        for batch in file.iter_batches(batch_size=1024, columns=present, row_groups=groups):
            from_here = max(0, span.first - 1 - number)
            number += min(from_here, len(batch))
            for content in batch.slice(from_here).to_pylist():
                number += 1
                if number >= span.end:
                    return
                yield Row(number, json.dumps(content, ensure_ascii=False), _asked(content))


def _row_groups(metadata: Any, span: Span) -> tuple[list[int], int]:
    """Returns the groups of rows that a piece lies in, and how many rows stand before them."""
    groups: list[int] = []
    before = skipped = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if before + rows < span.first:
            skipped += rows
        elif before + 1 < span.end:
            groups.append(group)
        before += rows
    return groups, skipped


def _asked(parts: dict[str, Any]) -> dict[str, str | None]:
    """Returns head, relation and tail, with None for what is asked."""
    return {name: None if parts.get(name) in (None, "", ASKED) else parts[name] for name in COLUMNS}
