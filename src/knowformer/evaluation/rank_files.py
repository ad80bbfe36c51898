"""Columns to a file, as its name says: Parquet, TSV or CSV."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from knowformer.errors import ConfigError, require_package
from knowformer.storage.atomic_files import atomic_path
from knowformer.tables import Cell

DELIMITERS = {".tsv": "\t", ".csv": ","}


def check_writable(path: Path) -> None:
    """Looks whether a file of this name can be written, before there is anything to write.

    Raises:
        ConfigError: the name says nothing of a format.
        MissingPackageError: Parquet without pyarrow.
    """
    if path.suffix == ".parquet":
        require_package("pyarrow", extra="frames", purpose=f"write {path}")
    elif path.suffix not in DELIMITERS:
        raise ConfigError(
            f"Expected a file name that ends with .parquet, .tsv or .csv, got {path.name!r}."
        )


def write_columns(path: Path, columns: Mapping[str, Sequence[Cell]]) -> None:
    """Writes columns of equal length, the file whole or not at all.

    Raises:
        ConfigError: the name says nothing of a format.
        MissingPackageError: Parquet without pyarrow.
        StorageError: the file cannot be written.
    """
    check_writable(path)
    with atomic_path(path) as temporary:
        if path.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.table(dict(columns)), temporary)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=DELIMITERS[path.suffix], lineterminator="\n")
            writer.writerow(columns)
            for row in zip(*columns.values(), strict=True):
                writer.writerow(map(_text, row))


def _text(cell: Cell) -> Cell:
    return str(cell).lower() if isinstance(cell, bool) else cell
