"""import_files: files of facts to an audited data-set folder, whole or not at all."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from knowformer.audit.audit import Audit, audit
from knowformer.audit.relation_overlap import find_overlaps, twin_groups
from knowformer.data.dataset import Dataset, build_dataset
from knowformer.data.fact_table import FactTable, FactTableBuilder
from knowformer.data.labels import Labels
from knowformer.data.readers.byte_streams import size_of
from knowformer.data.readers.delimited import Dialect, detect_layout, read_delimited
from knowformer.data.readers.formats import Format, format_of
from knowformer.data.readers.parquet import read_parquet
from knowformer.data.readers.rdf import RdfReader, short_names
from knowformer.data.readers.rows import BadRows, Chunk
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

Progress = Callable[[str, int, int], None]
"""Called with what is being done, and with the bytes read so far and in all."""


@dataclass(frozen=True)
class ImportOptions:
    """How files are read and split; the defaults work most things out."""

    format: Format | None = None
    """Of all files; by default told by each name."""
    dialect: Dialect = field(default_factory=Dialect)
    labels: tuple[Path, ...] = ()
    sizes: SplitSizes = field(default_factory=SplitSizes)
    seed: int = 0
    no_leaks: bool = False
    keep_literals: bool = False
    skip_bad: bool = False


@dataclass(frozen=True, repr=False)
class ImportResult:
    """A data set that was imported."""

    folder: Path
    dataset: Dataset
    audit: Audit
    notes: list[str]
    """What was worked out or left out, a sentence each."""
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
    reading = Reading(options, [Path(path) for path in listed], progress)
    table = reading.read()
    labels = reading.read_labels(table)
    reading.report("split")
    split_ids, notes = _split(table, options, reading.time_column)
    facts = [table.facts[split_ids == number] for number in SPLIT_IDS.values()]
    name = folder.resolve().name
    dataset = build_dataset(name, facts, table.entities, table.relations, labels=labels)
    reading.report("audit")
    audited = audit(dataset, repeated_rows=table.num_repeated)
    notes = [*reading.notes, *notes]
    record = _record(reading, table, notes, options)
    reading.report("write")
    write_folder(folder, dataset, audited, reading.bad_rows, record)
    return ImportResult(folder, dataset, audited, notes, table.num_rows, reading.bad_rows)


class Reading:
    """One reading of several files, and what there is to say about it."""

    def __init__(
        self, options: ImportOptions, paths: list[Path], progress: Progress | None
    ) -> None:
        self.options = options
        self.paths = paths
        self.notes: list[str] = []
        self.bad_rows = BadRows(skip=options.skip_bad)
        self._rdf = RdfReader(bad_rows=self.bad_rows, keep_literals=options.keep_literals)
        self._sizes = [size_of(path) for path in paths]  # first: a missing file has no format
        self._formats = [format_of(path, options.format) for path in paths]
        self._progress = progress
        self._done = 0
        self._first_rows: list[tuple[Path, list[str]]] = []
        self.time_column: TimeColumn | None = None

    def read(self) -> FactTable:
        """Reads all files; their facts are joined."""
        with_times = self.options.dialect.time is not None
        if with_times and any(kind.is_rdf for kind in self._formats):
            raise ConfigError("Expected a table with a column of times for `time`, got RDF.")
        if self.options.dialect != Dialect() and all(kind.is_rdf for kind in self._formats):
            raise ConfigError(
                "Expected a table for `columns`, `delimiter`, `quote` and `header`, got RDF, "
                "which needs none of them."
            )
        builder = FactTableBuilder(self.bad_rows, with_times=with_times)
        for path, kind, size in zip(self.paths, self._formats, self._sizes, strict=True):
            for chunk in self._chunks(path, kind):
                builder.add(chunk)
            self._done += size
        table = builder.finish()
        self.time_column = builder.time_column
        self._doubt_headers(table)
        if not len(table.facts):
            raise DataError(
                f"Expected facts in {', '.join(map(str, self.paths))}, got none."
                + self._explain_literals()
            )
        if self._rdf.left_out:
            self.notes.append(self._explain_literals().strip())
        return table

    def _chunks(self, path: Path, kind: Format) -> Iterator[Chunk]:
        dialect = kind.dialect(self.options.dialect)
        if kind.is_rdf:
            return self._rdf.read(path, kind, progress=self._report)
        if kind == Format.PARQUET:
            layout, chunks = read_parquet(
                path, dialect, bad_rows=self.bad_rows, progress=self._report
            )
        else:
            layout = detect_layout(path, dialect)
            chunks = read_delimited(path, layout, bad_rows=self.bad_rows, progress=self._report)
        self.notes.append(f"{path}: {layout.describe()}.")
        if not layout.has_header:
            self._first_rows.append((path, [layout.first_row[i] for i in layout.indices[:3]]))
        return chunks

    def _doubt_headers(self, table: FactTable) -> None:
        """Says so when a first line that was read as a fact shares no name with any other."""
        entities = dict(zip(table.entities, range(len(table.entities)), strict=True))
        relations = dict(zip(table.relations, range(len(table.relations)), strict=True))
        degrees = np.bincount(table.facts[:, [0, 2]].ravel(), minlength=len(entities))
        counts = np.bincount(table.facts[:, 1], minlength=len(relations))
        for path, (head, relation, tail) in self._first_rows:
            if not (head in entities and relation in relations and tail in entities):
                continue
            uses = (degrees[entities[head]], counts[relations[relation]], degrees[entities[tail]])
            if uses == (1, 1, 1):
                self.notes.append(
                    f"{path}: the first line ({head}, {relation}, {tail}) was read as a fact, but "
                    "none of its names occurs again; if it is a header, import with `header=True`."
                )

    def report(self, what: str, bytes_of_file: int = 0) -> None:
        """Tells whoever waits what is being done."""
        if self._progress:
            self._progress(what, self._done + bytes_of_file, sum(self._sizes))

    def _report(self, bytes_of_file: int) -> None:
        self.report("read", bytes_of_file)

    def _explain_literals(self) -> str:
        total = sum(self._rdf.left_out.values())
        if not total:
            return ""
        top = ", ".join(f"{name} ({n:,})" for name, n in self._rdf.left_out.most_common(3))
        given = len(self._rdf.labels)
        named = f"; {given:,} of what they name got a readable name from them" if given else ""
        return (
            f" {total:,} triples with a literal were left out{named}. Most: {top}. "
            "`keep_literals=True` makes entities of them."
        )

    def read_labels(self, table: FactTable) -> Labels:
        """Returns readable names: those of label files, then of RDF, then shortened IRIs."""
        found = dict(self._rdf.labels)
        for path in self.options.labels:
            kind = format_of(path, None)
            if kind.is_rdf or kind == Format.PARQUET:
                raise DataError(f"Expected a table of ids and names, TSV or CSV, got {path}.")
            dialect = kind.dialect(Dialect())
            layout = detect_layout(path, dialect, ("id", "name"))
            for chunk in read_delimited(path, layout, bad_rows=self.bad_rows):
                ids, names = chunk.columns
                found |= {id_: " ".join(name.split()) for id_, name in zip(ids, names, strict=True)}
            self.notes.append(f"{path}: {layout.describe()}.")
        if any(kind.is_rdf for kind in self._formats):
            found = short_names([*table.entities, *table.relations], found) | found
        entities = {name: found[name] for name in table.entities if found.get(name)}
        relations = {name: found[name] for name in table.relations if found.get(name)}
        if self.options.labels:
            self.notes.append(
                f"Readable names for {len(entities):,} of {len(table.entities):,} entities and "
                f"{len(relations):,} of {len(table.relations):,} relations."
            )
        return Labels(entities, relations)


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
        groups = twin_groups(table.facts, find_overlaps(table.facts, **counts), **counts)
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
    reading: Reading, table: FactTable, notes: list[str], options: ImportOptions
) -> dict[str, Any]:
    """Returns what the folder was made from."""
    return {
        "files": [path.name for path in reading.paths],
        "rows": table.num_rows,
        "repeated_rows": table.num_repeated,
        "bad_rows": len(reading.bad_rows.rows),
        "seed": options.seed,
        "no_leaks": options.no_leaks,
        "temporal": options.dialect.time,
        "notes": notes,
    }
