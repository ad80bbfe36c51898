"""Delimited text (TSV, CSV and their kin).

Delimiter, header and columns are taken from the options, else worked out from the first lines, and
reported, so that a wrong guess is seen.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from knowformer.data.readers.byte_streams import Source, open_source
from knowformer.data.readers.columns import (
    FACT_ROLES,
    Dialect,
    Layout,
    choose_columns,
    find_named_columns,
    with_time,
)
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows, Chunk, place, shorten
from knowformer.errors import ConfigError, DataError

# Small: a chunk's rows stay in the processor's cache, which halves the time of larger ones.
ROWS_PER_CHUNK = 1024
SAMPLE_LINES = 100

_SNIFFED = "\t,;|"


def read_delimited(
    path: Path, reading: Reading, *, delimiter: str | None = None
) -> Iterator[Chunk]:
    """Yields the rows of a file, some at a time, in the order of the wanted roles.

    Args:
        path: the file.
        reading: how to read it, and where to report.
        delimiter: the format's own; the reading's dialect goes before it.

    Raises:
        DataError: the file cannot be read, has other columns, or a bad row that is not skipped.
        ConfigError: an option that cannot be.
    """
    dialect = reading.dialect
    if dialect.delimiter is None:
        dialect = replace(dialect, delimiter=delimiter)
    layout = detect_layout(path, dialect, reading.roles)
    reading.note_layout(path, layout)
    with open_source(path) as source:
        reader = _reader(source, layout.delimiter, layout.quote)
        next_line = 1
        is_header = layout.has_header
        while True:
            rows: list[list[str]] = []
            broken: csv.Error | None = None
            try:
                rows.extend(islice(reader, ROWS_PER_CHUNK))  # keeps the rows before a broken one
            except csv.Error as error:
                broken = error
            if not rows and not broken:
                return
            *lines, next_line = _first_lines(rows, next_line, reader.line_num)
            if is_header and rows:
                rows, lines, is_header = rows[1:], lines[1:], False
            yield _by_column(path, layout, rows, lines, reading.bad_rows)
            if broken:
                _report_broken(place(path, next_line), broken, reading.bad_rows)
            next_line = reader.line_num + 1
            reading.progress(source.bytes_read())


def _first_lines(rows: list[list[str]], first: int, last: int) -> Sequence[int]:
    """Returns where each row begins, and what follows; quoted names may hold line breaks."""
    if last - first + 1 == len(rows):
        return range(first, last + 2)
    heights = [1 + sum(field.count("\n") for field in row) for row in rows]
    return list(accumulate(heights, initial=first))


def _reader(source: Source, delimiter: str, quote: str) -> Any:
    # Lines end at "\n" alone: a name may hold other characters that Unicode calls line breaks.
    text = io.TextIOWrapper(
        source.content, encoding="utf-8-sig", errors="surrogateescape", newline="\n"
    )
    return _csv_reader(text, delimiter, quote)


def _csv_reader(lines: Any, delimiter: str, quote: str, *, strict: bool = True) -> Any:
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=strict)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, quotechar=None)


def _parse_sample(sample: list[str], delimiter: str, quote: str) -> list[list[str]]:
    """Leniently: a sample may end inside a quoted name, and the reading proper says what is bad."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(_csv_reader(sample, delimiter, quote, strict=False))
    return [row for row in rows if row] or [sample[0].rstrip("\r\n").split(delimiter)]


def _by_column(
    path: Path, layout: Layout, rows: list[list[str]], lines: Sequence[int], bad_rows: BadRows
) -> Chunk:
    width = len(layout.first_row)
    if set(map(len, rows)) - {width}:
        good = [i for i, row in enumerate(rows) if _has_width(path, row, lines[i], width, bad_rows)]
        rows, lines = [rows[i] for i in good], [lines[i] for i in good]
    columns = tuple(list(map(itemgetter(index), rows)) for index in layout.indices)
    return Chunk(path, columns, lines)


def _has_width(path: Path, row: list[str], line: int, width: int, bad_rows: BadRows) -> bool:
    if len(row) == width:
        return True
    if len(row) > 1 or (row and row[0].strip()):  # blank lines are passed over
        hint = ""
        if len(row) > width:
            hint = " A name that holds the delimiter needs quotes; other quotes need `quote`."
        reason = f"Expected {width} columns as in the first line, got {len(row)}"
        bad_rows.add(place(path, line), reason, hint)
    return False


def _report_broken(where: str, error: csv.Error, bad_rows: BadRows) -> None:
    fault = str(error)
    if "field limit" in fault or "unexpected end" in fault:
        fault = "a quote that is never closed"
    elif "new-line" in fault:
        fault = "a carriage return inside a line"
    hint = " Choose how quotes are read with `quote`, an empty one for no quotes at all."
    bad_rows.add(where, f"Expected delimited text, got: {fault}", hint)


def detect_layout(path: Path, dialect: Dialect, roles: tuple[str, ...] = FACT_ROLES) -> Layout:
    """Works out how a file is to be read, from the options and the first lines.

    Raises:
        DataError: the file has not the columns that are wanted; the message names those it has.
        ConfigError: an option that cannot be.
    """
    _check_characters(dialect)
    sample = _sample(path)
    delimiter = dialect.delimiter or _sniff(path, sample, len(roles))
    quote = ("" if delimiter == "\t" else '"') if dialect.quote is None else dialect.quote
    first = _parse_sample(sample, delimiter, quote)[0]
    wanted = [*(dialect.columns or ()), *([dialect.time] if dialect.time else [])]
    has_header = dialect.header
    if has_header is None:
        is_named = any(not name.isdecimal() for name in wanted)
        has_header = is_named or find_named_columns(first, roles) is not None
    indices = choose_columns(path, first, dialect, roles, has_header=has_header)
    return Layout(delimiter, quote, has_header, first, with_time(roles, dialect), indices)


def _check_characters(dialect: Dialect) -> None:
    for what, character in (("delimiter", dialect.delimiter), ("quote", dialect.quote or None)):
        if character is not None and (len(character) != 1 or character in "\r\n"):
            raise ConfigError(f"Expected one character as `{what}`, got {character!r}.")


def _sample(path: Path) -> list[str]:
    with open_source(path) as source:
        text = io.TextIOWrapper(
            source.content, encoding="utf-8-sig", errors="surrogateescape", newline="\n"
        )
        lines = list(islice((line for line in text if not line.isspace()), SAMPLE_LINES))
    if not lines:
        raise DataError(f"Expected rows in {path}, got blank lines alone.")
    if "\r" in lines[0].rstrip("\r\n"):
        raise DataError(
            f"Expected line feeds at the ends of lines, got carriage returns alone in {path}. Save "
            "it with the line ends of Unix or Windows."
        )
    return lines


def _sniff(path: Path, sample: list[str], num_columns: int) -> str:
    """The delimiter under which most of the first lines have as many columns as the first."""

    def agreement(delimiter: str) -> float:
        rows = _parse_sample(sample, delimiter, "" if delimiter == "\t" else '"')
        widths = list(map(len, rows))
        return widths.count(widths[0]) / len(widths) if widths[0] >= num_columns else 0.0

    best = max(_SNIFFED, key=agreement)  # the first of equals
    if not agreement(best):
        raise DataError(
            f"Expected {num_columns} columns or more, separated by tab, comma, semicolon or pipe, "
            f"got {shorten(repr(sample[0].rstrip()))} as the first line of {path}. Name another "
            "delimiter with `delimiter`."
        )
    return best
