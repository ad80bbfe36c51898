"""Files to named triples; every error carries the path and the line."""

import codecs
from collections.abc import Iterator
from pathlib import Path

from knowformer.errors import DataError

NamedTriple = tuple[str, str, str]

COLUMNS = ("head", "relation", "tail")

HINT = " `import_files()` reads other tables, gzip, JSON Lines, Parquet and RDF."
BEGINNING = 4096


def read_triples(path: Path) -> list[NamedTriple]:
    """Reads UTF-8 TSV triples, ``head<TAB>relation<TAB>tail``, passing over blank lines.

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

    Raises:
        DataError: the file is missing, not UTF-8, or a line has other columns.
    """
    layout = "<TAB>".join(columns)
    for number, line in enumerate(_read_lines(path), start=1):
        if not line or line.isspace():
            continue
        fields = line.split("\t")
        if len(fields) != len(columns):
            hint = " A name must not contain a tab." if len(fields) > len(columns) else ""
            if not hint and columns == COLUMNS:
                hint = HINT
            raise DataError(
                f"Expected {len(columns)} tab-separated columns ({layout}), got {len(fields)} "
                f"at {path}:{number}.{hint}"
            )
        for column, field in zip(columns, fields, strict=True):
            if not field.strip():
                raise DataError(
                    f"Expected a name as {column}, got an empty one at {path}:{number}."
                )
        yield fields


def _read_lines(path: Path) -> list[str]:
    try:
        content = path.read_bytes()
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
