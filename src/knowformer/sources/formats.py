"""Formats of facts, and which one a file's name tells."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from knowformer.errors import DataError
from knowformer.sources.delimited import Dialect


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
        raise DataError(
            f"Expected a name that tells the format ({', '.join(SUFFIXES)}, or any of them with "
            f".gz), got {path}. Say it with --format."
        )
    return SUFFIXES[suffix]
