"""import_files: files of facts to an audited data-set folder, whole or not at all."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from knowformer.audit.audit import Audit, audit
from knowformer.audit.relation_overlap import find_overlaps, leak_groups
from knowformer.choices import Format
from knowformer.data.dataset import Dataset, build_dataset
from knowformer.data.fact_table import FactTable, FactTableBuilder
from knowformer.data.labels import Labels
from knowformer.data.readers.byte_streams import size_of
from knowformer.data.readers.columns import Dialect
from knowformer.data.readers.formats import READERS, format_of
from knowformer.data.readers.rdf import short_names
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows
from knowformer.data.readers.times import TimeColumn
from knowformer.data.splitting import (
    LEFT_OUT,
    SPLIT_IDS,
    TEST,
    VALID,
    SplitIds,
    SplitSizes,
    split_by_seed,
    split_by_time,
)
from knowformer.errors import ConfigError, DataError
from knowformer.importing.folder import check_free, write_folder

MAPPED_FROM = 5_000_000  # facts; more take minutes to read as text, and gigabytes of memory

Progress = Callable[[str, int, int], None]
"""Called with the stage of the import, the bytes read so far and the bytes of all files."""


@dataclass(frozen=True)
class ImportOptions:
    """How files are read and split; the defaults work most things out."""

    format: Format | None = None
    """Of all files; by default by the ending of each name."""
    dialect: Dialect = field(default_factory=Dialect)
    labels: tuple[Path, ...] = ()
    sizes: SplitSizes = field(default_factory=SplitSizes)
    seed: int = 0
    no_leaks: bool = False
    keep_literals: bool = False
    skip_bad: bool = False
    mapped: bool | None = None
    """Write arrays that stay on disk, instead of text; by default from five million facts on."""


@dataclass(frozen=True, repr=False)
class ImportResult:
    """A data set that was imported."""

    folder: Path
    dataset: Dataset
    audit: Audit
    notes: list[str]
    """How files were read and split, and what was left out, a sentence each."""
    num_rows: int
    bad_rows: BadRows

    def __repr__(self) -> str:
        return f"ImportResult({str(self.folder)!r}, {self.dataset!r}, {self.audit!r})"


def import_files(
    paths: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    options: ImportOptions | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> ImportResult:
    """Reads facts from files, splits them, audits them and writes a data-set folder.

    Args:
        paths: one file or several, whose facts are joined.
        out: the folder to write.
        options: how to read and split.
        force: write over a folder that is there already.
        progress: called as the work goes on.

    Raises:
        DataError: a file is not as expected; nothing is written.
        StorageError: the folder is there already or cannot be written.
    """
    options = options or ImportOptions()
    folder = Path(out)
    check_free(folder, force=force)
    listed = [paths] if isinstance(paths, str | Path) else paths
    files = FactFiles(options, [Path(path) for path in listed], progress)
    table = files.read()
    labels = files.read_labels(table)
    files.report("split")
    split_ids, notes = _split(table, options, files.time_column)
    facts = [table.facts[split_ids == number] for number in SPLIT_IDS.values()]
    name = folder.resolve().name
    dataset = build_dataset(name, facts, table.entities, table.relations, labels=labels)
    files.report("audit")
    audited = audit(dataset, repeated_rows=table.num_repeated)
    notes = [*files.notes, *notes]
    record = _record(files, table, notes, options)
    files.report("write")
    mapped = len(table.facts) >= MAPPED_FROM if options.mapped is None else options.mapped
    write_folder(folder, dataset, audited, files.bad_rows, record, mapped=mapped)
    return ImportResult(folder, dataset, audited, notes, table.num_rows, files.bad_rows)


class FactFiles:
    """The files of one import: their facts, their readable names, and notes about the reading."""

    def __init__(
        self, options: ImportOptions, paths: list[Path], progress: Progress | None
    ) -> None:
        self.options = options
        self.paths = paths
        self.notes: list[str] = []
        self.time_column: TimeColumn | None = None
        self._reading = Reading(
            dialect=options.dialect,
            keep_literals=options.keep_literals,
            bad_rows=BadRows(skip=options.skip_bad),
            progress=lambda num_bytes: self.report("read", num_bytes),
        )
        self._sizes = [size_of(path) for path in paths]  # first: a missing file has no format
        self._formats = [format_of(path, options.format) for path in paths]
        self._are_tables = [READERS[name].is_table for name in self._formats]
        self._progress = progress
        self._done = 0

    @property
    def bad_rows(self) -> BadRows:
        """The rows that could not be used."""
        return self._reading.bad_rows

    def read(self) -> FactTable:
        """Reads all files; their facts are joined."""
        with_times = self.options.dialect.time is not None
        if with_times and not all(self._are_tables):
            raise ConfigError("Expected a table with a column of times for `time`, got RDF.")
        if self.options.dialect != Dialect() and not any(self._are_tables):
            raise ConfigError(
                "Expected a table for `columns`, `delimiter`, `quote` and `header`, got RDF, "
                "which needs none of them."
            )
        builder = FactTableBuilder(self.bad_rows, with_times=with_times)
        for path, format_, size in zip(self.paths, self._formats, self._sizes, strict=True):
            for chunk in READERS[format_].read(path, self._reading):
                builder.add(chunk)
            self._done += size
        table = builder.finish()
        self.time_column = builder.time_column
        if not len(table.facts):
            raise DataError(
                f"Expected facts in {', '.join(map(str, self.paths))}, got none."
                + self._explain_literals()
            )
        self.notes += [*self._reading.notes, *self._doubt_headers(table)]
        if self._reading.left_out:
            self.notes.append(self._explain_literals().strip())
        return table

    def _doubt_headers(self, table: FactTable) -> Iterator[str]:
        """Names first lines that were read as facts, but have no name in common with others."""
        entities = dict(zip(table.entities, range(len(table.entities)), strict=True))
        relations = dict(zip(table.relations, range(len(table.relations)), strict=True))
        degrees = np.bincount(table.facts[:, [0, 2]].ravel(), minlength=len(entities))
        counts = np.bincount(table.facts[:, 1], minlength=len(relations))
        for path, (head, relation, tail) in self._reading.first_rows:
            if not (head in entities and relation in relations and tail in entities):
                continue
            uses = (degrees[entities[head]], counts[relations[relation]], degrees[entities[tail]])
            if uses == (1, 1, 1):
                yield (
                    f"{path}: the first line ({head}, {relation}, {tail}) was read as a fact, but "
                    "none of its names occurs again; if it is a header, import with `header=True`."
                )

    def report(self, what: str, bytes_of_file: int = 0) -> None:
        """Reports progress: the stage, and the bytes read of the current file."""
        if self._progress:
            self._progress(what, self._done + bytes_of_file, sum(self._sizes))

    def _explain_literals(self) -> str:
        left_out, num_named = self._reading.left_out, len(self._reading.labels.names)
        if not left_out:
            return ""
        top = ", ".join(f"{name} ({n:,})" for name, n in left_out.most_common(3))
        named = f"; {num_named:,} of what they name got a readable name from them"
        return (
            f" {left_out.total():,} triples with a literal were left out"
            f"{named if num_named else ''}. Most: {top}. "
            "`keep_literals=True` makes entities of them."
        )

    def read_labels(self, table: FactTable) -> Labels:
        """Returns readable names: those of label files, then of RDF, then shortened IRIs."""
        names = dict(self._reading.labels.names)
        for path in self.options.labels:
            names |= self._read_label_file(path)
        if not all(self._are_tables):
            names = short_names([*table.entities, *table.relations], names) | names
        entities = {name: names[name] for name in table.entities if names.get(name)}
        relations = {name: names[name] for name in table.relations if names.get(name)}
        if self.options.labels:
            self.notes.append(
                f"Readable names for {len(entities):,} of {len(table.entities):,} entities and "
                f"{len(relations):,} of {len(table.relations):,} relations."
            )
        return Labels(entities, relations)

    def _read_label_file(self, path: Path) -> dict[str, str]:
        reader = READERS[format_of(path)]
        if not reader.is_table:
            raise DataError(f"Expected a table of ids and names, got RDF in {path}.")
        reading = Reading(roles=("id", "name"), bad_rows=self.bad_rows)
        names: dict[str, str] = {}
        for chunk in reader.read(path, reading):
            ids, readable = chunk.columns
            names |= {id_: " ".join(name.split()) for id_, name in zip(ids, readable, strict=True)}
        self.notes += reading.notes
        return names


def _split(
    table: FactTable, options: ImportOptions, time_column: TimeColumn | None
) -> tuple[SplitIds, list[str]]:
    """Returns the split of each fact, and notes about the split."""
    if table.times is not None and time_column is not None:
        cut = split_by_time(table.facts, table.times, sizes=options.sizes)
        notes = [
            f"Split by time: validation from {time_column.show(cut.valid_from)}, test from "
            f"{time_column.show(cut.test_from)}."
        ]
        if left_out := int((cut.split_ids == LEFT_OUT).sum()):
            notes.append(f"{left_out:,} later facts of relations without earlier ones left out.")
        if not all(_held_out(cut.split_ids)):
            raise DataError(
                "Expected later facts of relations that have earlier ones, to hold them out, got "
                "none. Hold out more with `valid` and `test`, or leave `time` out."
            )
        return cut.split_ids, notes
    groups = None
    if options.no_leaks:
        counts = {"num_entities": len(table.entities), "num_relations": len(table.relations)}
        groups = leak_groups(table.facts, find_overlaps(table.facts, **counts), **counts)
    split_ids = split_by_seed(table.facts, seed=options.seed, sizes=options.sizes, groups=groups)
    notes = [f"Split by seed {options.seed}; every name of valid and test occurs in train."]
    held_out, wanted = _held_out(split_ids), options.sizes.counts(len(table.facts))
    if sum(held_out) < 0.9 * sum(wanted):
        notes.append(
            f"Held out {held_out[0]:,} and {held_out[1]:,} facts instead of {wanted[0]:,} and "
            f"{wanted[1]:,}: the others are needed in training, so that it has every name."
        )
    return split_ids, notes


def _held_out(split_ids: SplitIds) -> tuple[int, int]:
    return int((split_ids == VALID).sum()), int((split_ids == TEST).sum())


def _record(
    files: FactFiles, table: FactTable, notes: list[str], options: ImportOptions
) -> dict[str, Any]:
    """Returns what the folder was made from."""
    return {
        "files": [path.name for path in files.paths],
        "rows": table.num_rows,
        "repeated_rows": table.num_repeated,
        "bad_rows": len(files.bad_rows.rows),
        "seed": options.seed,
        "no_leaks": options.no_leaks,
        "temporal": options.dialect.time,
        "notes": notes,
    }
