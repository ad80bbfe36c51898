"""Delimited text (TSV, CSV and their kin): which column is which, then rows by column.

Delimiter, header and columns are taken from the options, else worked out from the first lines; what
was worked out is said, so that a wrong guess is seen.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from knowformer.data.readers.byte_streams import Source, open_source
from knowformer.data.readers.rows import BadRows, ByteProgress, Chunk, place, shorten
from knowformer.errors import ConfigError, DataError, suggest

# Small: a chunk's rows stay in the processor's cache, which halves the time of larger ones.
ROWS_PER_CHUNK = 1024
SAMPLE_LINES = 100

DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "pipe", " ": "space"}
_SNIFFED = "\t,;|"

# What columns are called in the files of the field, by what they mean.
ROLE_WORDS: dict[str, frozenset[str]] = {
    "head": frozenset({"head", "subject", "source", "from", "h", "s", "subj", "src", "start"}),
    "relation": frozenset(
        {"relation", "predicate", "property", "rel", "r", "p", "pred", "edge", "edge_type", "label"}
    ),
    "tail": frozenset({"tail", "object", "target", "to", "t", "o", "obj", "dst", "end"}),
    "id": frozenset({"id", "entity", "iri", "uri", "mid", "key"}),
    "name": frozenset({"name", "label", "title"}),
}
FACT_ROLES = ("head", "relation", "tail")


@dataclass(frozen=True)
class Dialect:
    """How to read delimited text; what is None is worked out from the first lines."""

    delimiter: str | None = None
    quote: str | None = None
    """The quote character, or an empty string for none; by default none with tabs, else ``\"``."""
    header: bool | None = None
    columns: tuple[str, ...] | None = None
    """Of head, relation and tail: names, or numbers from 1."""
    time: str | None = None
    """A further column that says when a fact was made."""


@dataclass(frozen=True)
class Layout:
    """What was worked out about a file."""

    delimiter: str
    """Empty for a format that has columns by itself."""
    quote: str
    has_header: bool
    first_row: list[str]
    roles: tuple[str, ...]
    indices: tuple[int, ...]

    def describe(self) -> str:
        """Says how the file is read, in one line."""
        named = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        columns = ", ".join(
            f"{role} = {self.first_row[i] if self.has_header else f'column {i + 1}'}"
            for role, i in zip(self.roles, self.indices, strict=True)
        )
        if not self.delimiter:
            return columns
        header = "the first line is a header" if self.has_header else "no header line"
        return f"{named}-separated, {header}; {columns}"


def read_delimited(
    path: Path,
    layout: Layout,
    *,
    bad_rows: BadRows,
    progress: ByteProgress | None = None,
) -> Iterator[Chunk]:
    """Yields the rows of a file, some at a time, in the order of the layout's roles.

    Raises:
        DataError: the file cannot be read, or has a bad row that is not to be passed over.
    """
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
            yield _by_column(path, layout, rows, lines, bad_rows)
            if broken:
                _report_broken(place(path, next_line), broken, bad_rows)
            next_line = reader.line_num + 1
            if progress:
                progress(source.bytes_read())


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
    said = str(error)
    if "field limit" in said or "unexpected end" in said:
        said = "a quote that is never closed"
    elif "new-line" in said:
        said = "a carriage return inside a line"
    hint = " Choose how quotes are read with `quote`, an empty one for no quotes at all."
    bad_rows.add(where, f"Expected delimited text, got: {said}", hint)


def detect_layout(path: Path, dialect: Dialect, roles: tuple[str, ...] = FACT_ROLES) -> Layout:
    """Works out how a file is to be read, from the options and the first lines.

    Raises:
        DataError: the file has not the columns that are wanted; the message names those it has.
        ConfigError: an option that cannot be.
    """
    _check(dialect, roles)
    sample = _sample(path)
    delimiter = dialect.delimiter or _sniff(path, sample, len(roles))
    quote = ("" if delimiter == "\t" else '"') if dialect.quote is None else dialect.quote
    first = _parse_sample(sample, delimiter, quote)[0]
    wanted = [*(dialect.columns or ()), *([dialect.time] if dialect.time else [])]
    has_header = dialect.header
    if has_header is None:
        is_named = any(not name.isdecimal() for name in wanted)
        has_header = is_named or _by_words(first, roles) is not None
    indices = choose_columns(path, first, dialect, roles, has_header=has_header)
    shown = roles if dialect.time is None else (*roles, "time")
    return Layout(delimiter, quote, has_header, first, shown, indices)


def _check(dialect: Dialect, roles: tuple[str, ...]) -> None:
    for what, character in (("delimiter", dialect.delimiter), ("quote", dialect.quote or None)):
        if character is not None and (len(character) != 1 or character in "\r\n"):
            raise ConfigError(f"Expected one character as `{what}`, got {character!r}.")
    if dialect.columns and len(dialect.columns) != len(roles):
        raise ConfigError(
            f"Expected {len(roles)} columns ({','.join(roles)}) as `columns`, got "
            f"{len(dialect.columns)}: {','.join(dialect.columns)}."
        )


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


def _by_words(first: Sequence[str], roles: tuple[str, ...]) -> tuple[int, ...] | None:
    """Returns the columns of a header that uses well-known words, or None."""
    cells = [cell.strip().casefold().removesuffix("_id") for cell in first]
    found: list[int] = []
    for role in roles:
        matches = [i for i, cell in enumerate(cells) if cell in ROLE_WORDS[role]]
        exact = [i for i in matches if cells[i] == role]
        if len(matches) != 1 and len(exact) != 1:
            return None
        found.append((exact or matches)[0])
    return tuple(found) if len(set(found)) == len(roles) else None


def choose_columns(
    path: Path,
    first: list[str],
    dialect: Dialect,
    roles: tuple[str, ...] = FACT_ROLES,
    *,
    has_header: bool = True,
) -> tuple[int, ...]:
    """Returns the columns of each role, and of the time if there is one, counted from 0.

    Raises:
        DataError: there is no such column, or nothing says which columns are meant.
    """
    time = () if dialect.time is None else (_column(path, first, dialect.time, has_header),)
    if dialect.columns:
        chosen = tuple(_column(path, first, name, has_header) for name in dialect.columns)
        if len(set(chosen)) < len(chosen):
            raise ConfigError(
                f"Expected {len(roles)} different columns ({','.join(roles)}) as `columns`, got "
                f"{','.join(dialect.columns)}."
            )
        return (*chosen, *time)
    by_words = _by_words(first, roles) if has_header else None
    rest = tuple(i for i in range(len(first)) if i not in time)
    if by_words is None and len(rest) != len(roles):
        beside = " beside the time" if time else ""
        raise DataError(
            f"Expected {len(roles)} columns ({', '.join(roles)}){beside}, got {len(rest)} in "
            f"{path}: {shorten(', '.join(map(repr, first)))}. {_advice(roles, len(rest))}"
        )
    return (*(by_words or rest), *time)


def _advice(roles: tuple[str, ...], found: int) -> str:
    """Returns what to do about a table with too many or too few columns."""
    if roles != FACT_ROLES:
        return f"Name the columns in a header line: {', '.join(roles)}."
    if found > len(roles):
        return "Say which ones with `columns`, by name or by number from 1."
    return "Each row needs all of them; for another character between columns give `delimiter`."


def _column(path: Path, first: list[str], wanted: str, has_header: bool) -> int:
    if wanted.isdecimal():
        number = int(wanted)
        if not 1 <= number <= len(first):
            raise DataError(
                f"Expected a column number from 1 to {len(first)}, got {number} for {path}."
            )
        return number - 1
    names = [cell.strip() for cell in first]
    if not has_header or wanted not in names:
        raise DataError(
            f"Expected a column named {wanted!r} in {path}, found "
            f"{shorten(', '.join(names))} in its first line.{suggest(wanted, names)}"
        )
    return names.index(wanted)
