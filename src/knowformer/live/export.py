"""Live facts and decisions as files: TSV, Parquet and N-Triples.

TSV escapes a tab or a line break inside a name; the others keep every character as it is.
N-Triples has the facts that were added, not those that were removed; a name that is no IRI becomes
one, with the name as its label. A decision is there an ``rdf:Statement``.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields
from itertools import islice
from typing import Any, Literal, get_args
from urllib.parse import quote

from knowformer.answering.answer_files import tsv_cell
from knowformer.errors import ConfigError, require_package
from knowformer.live.decisions import StoredDecision
from knowformer.live.facts import StoredChange
from knowformer.live.snapshots import LiveGraph, Snapshot

ExportFormat = Literal["tsv", "parquet", "nt"]

MEDIA_TYPES: dict[ExportFormat, str] = {
    "tsv": "text/tab-separated-values; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "nt": "application/n-triples",
}
FACT_COLUMNS = tuple(
    field.name for field in fields(StoredChange) if field.name not in ("undoes", "undone_by")
)
DECISION_COLUMNS = tuple(field.name for field in fields(StoredDecision))
WHOLE = ("id", "rank", "snapshot", "fact_id")  # columns of whole numbers
ROWS_AT_ONCE = 50_000

OWN = "urn:knowformer:"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
XSD = "http://www.w3.org/2001/XMLSchema#"
IRI = re.compile(r"(?:https?://|urn:)[^\x00-\x20<>\"{}|^`\\\x7f-\x9f]+")
ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}


def export_facts(live: LiveGraph, kind: ExportFormat) -> Iterator[bytes]:
    """Yields a file of the changes that tell the graph from the one that was loaded.

    Raises:
        ConfigError: the format is none that is known.
        MissingPackageError: it is Parquet, and pyarrow is not installed.
    """
    _check(kind)
    snapshot = live.snapshot()
    changes = live.changes_in_force(snapshot)
    if kind == "nt":
        return _encoded(_fact_triples(changes, snapshot))
    rows = ({name: getattr(change, name) for name in FACT_COLUMNS} for change in changes)
    return _TABLES[kind](rows, FACT_COLUMNS)


def export_decisions(live: LiveGraph, kind: ExportFormat) -> Iterator[bytes]:
    """Yields a file of all decisions; as N-Triples without those that were taken back.

    Raises:
        ConfigError: the format is none that is known.
        MissingPackageError: it is Parquet, and pyarrow is not installed.
    """
    _check(kind)
    decisions = live.every_decision()
    if kind == "nt":
        return _encoded(_decision_triples(decisions, live.snapshot()))
    return _TABLES[kind](map(asdict, decisions), DECISION_COLUMNS)


def _check(kind: ExportFormat) -> None:
    if kind not in get_args(ExportFormat):
        raise ConfigError(f"Expected {', '.join(get_args(ExportFormat))} as format, got {kind!r}.")
    if kind == "parquet":
        require_package("pyarrow", extra="frames", purpose="write Parquet")


def _tsv(rows: Iterable[dict[str, Any]], columns: tuple[str, ...]) -> Iterator[bytes]:
    yield ("\t".join(columns) + "\n").encode()
    for row in rows:
        yield ("\t".join(tsv_cell(row[column]) for column in columns) + "\n").encode()


def _parquet(rows: Iterable[dict[str, Any]], columns: tuple[str, ...]) -> Iterator[bytes]:
    import pyarrow
    import pyarrow.parquet

    types = dict.fromkeys(WHOLE, pyarrow.int64()) | {"probability": pyarrow.float64()}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in columns])
    buffer, left = io.BytesIO(), iter(rows)
    with pyarrow.parquet.ParquetWriter(buffer, schema) as writer:
        while some := list(islice(left, ROWS_AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(some, schema=schema))
    yield buffer.getvalue()


_TABLES: dict[str, Callable[[Iterable[dict[str, Any]], tuple[str, ...]], Iterator[bytes]]] = {
    "tsv": _tsv,
    "parquet": _parquet,
}


class _Triples:
    """Writes triples; what a name is called is said once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._labels = snapshot.reasoner.labels
        self._named: set[str] = set()

    def iri(self, name: str) -> str:
        """Returns the IRI of a name."""
        return f"<{name}>" if IRI.fullmatch(name) else f"<{OWN}name:{quote(name, safe='')}>"

    def naming(self, name: str, label: str) -> Iterator[str]:
        """Yields what an IRI is called, unless it is itself its name, or that was said."""
        if name not in self._named and (label != name or not IRI.fullmatch(name)):
            self._named.add(name)
            yield f"{self.iri(name)} <{LABEL}> {_literal(label)} ."

    def fact(self, head: str, relation: str, tail: str) -> Iterator[str]:
        """Yields the readable names of a fact's parts."""
        yield from self.naming(head, self._labels.entities.get(head, head))
        yield from self.naming(relation, self._labels.relations.get(relation, relation))
        yield from self.naming(tail, self._labels.entities.get(tail, tail))


def _fact_triples(changes: Iterable[StoredChange], snapshot: Snapshot) -> Iterator[str]:
    triples = _Triples(snapshot)
    for change in changes:
        if change.action == "add":
            yield from triples.fact(*change.fact)
            yield f"{' '.join(map(triples.iri, change.fact))} ."


def _decision_triples(decisions: Iterable[StoredDecision], snapshot: Snapshot) -> Iterator[str]:
    triples = _Triples(snapshot)
    for decision in decisions:
        if decision.undone is not None:
            continue
        fact = (decision.head, decision.relation, decision.tail)
        yield from triples.fact(*fact)
        node = f"<{OWN}decision:{decision.id}>"
        yield f"{node} <{RDF}type> <{RDF}Statement> ."
        for part, name in zip(("subject", "predicate", "object"), fact, strict=True):
            yield f"{node} <{RDF}{part}> {triples.iri(name)} ."
        for name in ("verdict", "author", "time", "note", "rank", "probability"):
            value = getattr(decision, name)
            if value is not None:
                yield f"{node} <{OWN}{name}> {_literal(value)} ."


def _literal(value: str | int | float) -> str:
    if isinstance(value, str):
        return '"' + "".join(ESCAPED.get(letter, letter) for letter in value) + '"'
    return f'"{value}"^^<{XSD}{"integer" if isinstance(value, int) else "double"}>'


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    return (f"{line}\n".encode() for line in lines)
