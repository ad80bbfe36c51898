"""Formats of facts, and which one a file's name tells."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from knowformer.data.readers.delimited import Dialect
from knowformer.errors import DataError


class Format(StrEnum):
    """What a file of facts may be written in."""

    TSV = "tsv"
    CSV = "csv"
    PARQUET = "parquet"
    NTRIPLES = "ntriples"
    TURTLE = "turtle"
    RDFXML = "rdfxml"
    NQUADS = "nquads"
    TRIG = "trig"

    @property
    def is_rdf(self) -> bool:
        """Returns True for the formats of RDF."""
        return self not in {Format.TSV, Format.CSV, Format.PARQUET}

    def dialect(self, dialect: Dialect) -> Dialect:
        """Returns the dialect with what the format itself says: TSV has tabs."""
        if self == Format.TSV and dialect.delimiter is None:
            return replace(dialect, delimiter="\t")
        return dialect


SUFFIXES: dict[str, Format] = {
    ".tsv": Format.TSV,
    ".tab": Format.TSV,
    ".csv": Format.CSV,
    ".psv": Format.CSV,
    ".txt": Format.CSV,  # the delimiter is worked out
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".nt": Format.NTRIPLES,
    ".ttl": Format.TURTLE,
    ".rdf": Format.RDFXML,
    ".owl": Format.RDFXML,
    ".xml": Format.RDFXML,
    ".nq": Format.NQUADS,
    ".trig": Format.TRIG,
}


# What people have too, and how they get to one of the above.
HINTS = {
    (".xlsx", ".xls", ".ods"): "Save the sheet as CSV.",
    (".zip", ".bz2", ".xz", ".zst", ".7z", ".tar"): "Unpack it, or pack it with gzip.",
    (".json", ".jsonl", ".jsonld"): "Write it as a table, or as N-Triples.",
}


def format_of(path: Path, given: Format | None) -> Format:
    """Returns the format that is given, else the one that the file's name tells.

    Raises:
        DataError: the name tells nothing.
    """
    if given is not None:
        return given
    name = path.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        advice = next((hint for known, hint in HINTS.items() if suffix in known), "")
        raise DataError(
            f"Expected a name that tells the format ({', '.join(SUFFIXES)}, or any of them with "
            f".gz), got {path}. {advice or 'Say it with `format`.'}"
        )
    return SUFFIXES[suffix]
