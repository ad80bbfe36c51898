"""Files to named triples; every error carries the path and the line."""

import codecs
import csv
from collections.abc import Iterator
from pathlib import Path

from knowformer.errors import DataError
from knowformer.storage.plain_files import read_plain

NamedTriple = tuple[str, str, str]

COLUMNS = ("head", "relation", "tail")

HINT = " `import_files()` reads other tables, gzip, JSON Lines, Parquet and RDF."
BEGINNING = 4096


def read_triples(path: Path) -> list[NamedTriple]:
    """Reads UTF-8 triples, ``head<TAB>relation<TAB>tail`` or CSV, passing over blank lines.

    Raises:
        DataError: the file is missing, empty, not UTF-8, or a line has not three named columns.
    """
    triples = [(head, relation, tail) for head, relation, tail in read_columns(path, COLUMNS)]
    if not triples:
        raise DataError(
            f"Expected triples in {path}, got an empty file. Each line needs "
            "head<TAB>relation<TAB>tail."
        )
    return triples


def read_edges(path: Path, relation: str) -> list[NamedTriple]:
    """Reads ``u<TAB>v`` lines of a graph with one kind of edge as triples of ``relation``."""
    return [(head, relation, tail) for head, tail in read_columns(path, ("u", "v"))]


def read_columns(path: Path, columns: tuple[str, ...]) -> Iterator[list[str]]:
    """Yields the fields of each line of UTF-8 TSV, one per named column, passing over blank lines.

    A file that ends in .csv has commas between them, and quotes around fields that hold one; a
    first line that names the columns is passed over.

    Raises:
        DataError: the file is missing, not UTF-8, or a line has other columns.
    """
    is_csv = path.suffix.lower() == ".csv"
    for number, line in enumerate(_read_lines(path), start=1):
        if not line or line.isspace():
            continue
        fields = _csv_fields(path, number, line) if is_csv else line.split("\t")
        if is_csv and number == 1 and tuple(field.lower() for field in fields) == columns:
            continue
        if len(fields) != len(columns):
            raise _wrong_columns(path, number, len(fields), columns, is_csv=is_csv)
        for column, field in zip(columns, fields, strict=True):
            if not field.strip():
                raise DataError(
                    f"Expected a name as {column}, got an empty one at {path}:{number}."
                )
        yield fields


def _csv_fields(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        raise DataError(
            f"Expected comma-separated text, got: {error} at {path}:{number}."
        ) from None


def _wrong_columns(
    path: Path, number: int, found: int, columns: tuple[str, ...], *, is_csv: bool
) -> DataError:
    mark, layout = ("comma", ",".join(columns)) if is_csv else ("tab", "<TAB>".join(columns))
    hint = HINT if columns == COLUMNS else ""
    if found > len(columns):
        quoted = " Put names that hold a comma in quotes."
        hint = quoted if is_csv else " A name must not contain a tab."
    return DataError(
        f"Expected {len(columns)} {mark}-separated columns ({layout}), got {found} at "
        f"{path}:{number}.{hint}"
    )


def _read_lines(path: Path) -> list[str]:
    try:
        content = read_plain(path)
    except FileNotFoundError:
        raise DataError(f"Expected a triples file at {path}, found none.") from None
    except OSError as error:
        raise DataError(f"Expected a readable file at {path}, got '{error.strerror}'.") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(
                f"Expected UTF-8 text, got UTF-16 at {path}. Save the file as UTF-8."
            ) from error
        if b"\0" in content[:BEGINNING]:
            raise DataError(f"Expected UTF-8 text, got a binary file at {path}.{HINT}") from error
        line = content[: error.start].count(b"\n") + 1
        raise DataError(
            f"Expected UTF-8 text, got byte 0x{content[error.start]:02x} at {path}:{line}. "
            "Save the file as UTF-8."
        ) from error
    # Not splitlines(): a name may hold other characters that Unicode calls line breaks.
    return [line.removesuffix("\r") for line in text.split("\n")]
