"""Formats of facts: the reader of each, and which one a file's name tells.

A new format is a reader in a file of its own, a member of ``choices.Format``, and a line here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from knowformer.choices import Format
from knowformer.data.readers.delimited import read_delimited
from knowformer.data.readers.json_lines import read_json_lines
from knowformer.data.readers.parquet import read_parquet
from knowformer.data.readers.rdf import read_rdf
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import Chunk
from knowformer.errors import DataError


@dataclass(frozen=True)
class FormatReader:
    """How a format is read, and how its files' names end."""

    read: Callable[[Path, Reading], Iterator[Chunk]]
    endings: tuple[str, ...]
    is_table: bool = True
    """Whether it has columns to choose from; RDF has none."""


def _rdf(syntax: str, *endings: str) -> FormatReader:
    return FormatReader(partial(read_rdf, syntax=syntax), endings, is_table=False)


READERS: dict[Format, FormatReader] = {
    Format.TSV: FormatReader(partial(read_delimited, delimiter="\t"), (".tsv", ".tab")),
    Format.CSV: FormatReader(read_delimited, (".csv", ".psv", ".txt")),
    Format.JSONL: FormatReader(read_json_lines, (".jsonl", ".ndjson")),
    Format.PARQUET: FormatReader(read_parquet, (".parquet", ".pq")),
    Format.NTRIPLES: _rdf("N_TRIPLES", ".nt"),
    Format.TURTLE: _rdf("TURTLE", ".ttl"),
    Format.RDFXML: _rdf("RDF_XML", ".rdf", ".owl", ".xml"),
    Format.NQUADS: _rdf("N_QUADS", ".nq"),
    Format.TRIG: _rdf("TRIG", ".trig"),
}
ENDINGS = {ending: name for name, reader in READERS.items() for ending in reader.endings}

# What people have too, and how they get to one of the above.
HINTS = {
    (".xlsx", ".xls", ".ods"): "Save the sheet as CSV.",
    (".zip", ".bz2", ".xz", ".zst", ".7z", ".tar"): "Unpack it, or pack it with gzip.",
    (".json", ".jsonld"): "Write it as JSON Lines, an object a line, or as N-Triples.",
}


def format_of(path: Path, given: Format | None = None) -> Format:
    """Returns the format that is given, else the one that the file's name tells.

    Raises:
        DataError: the name tells nothing.
    """
    if given is not None:
        return given
    name = path.name.lower().removesuffix(".gz")
    ending = Path(name).suffix
    if ending not in ENDINGS:
        advice = next((hint for known, hint in HINTS.items() if ending in known), "")
        raise DataError(
            f"Expected a name that tells the format ({', '.join(ENDINGS)}, or any of them with "
            f".gz), got {path}. {advice or 'Say it with `format`.'}"
        )
    return ENDINGS[ending]
