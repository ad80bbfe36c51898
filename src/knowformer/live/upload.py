"""Bulk upload: rows of TSV, CSV or JSON lines become changes; bad rows are told one by one.

TSV     head<TAB>relation<TAB>tail; or a first line that names the columns: head, relation, tail,
        and if wanted action (add or remove), why and source; other columns are passed over
CSV     the same with commas, and quotes around what holds one
JSONL   an object a line, with these keys
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from knowformer.errors import ConfigError, DataError, UserError
from knowformer.live.facts import Change, check_change
from knowformer.live.snapshots import LiveGraph, Snapshot, Step, effective

UploadFormat = Literal["tsv", "csv", "jsonl"]

COLUMNS = ("head", "relation", "tail")
OPTIONAL = ("action", "why", "source")
MAX_LISTED = 1000  # rows that are told one by one


@dataclass(frozen=True)
class RejectedRow:
    """A row that is no change."""

    row: int
    """Its line, from 1."""
    message: str


@dataclass(frozen=True)
class UploadResult:
    """What became of the rows."""

    version: int
    """The snapshot that has them."""
    accepted: int
    """Changes that were made, or would be."""
    unchanged: int
    """Facts that were there already, or were not there to remove."""
    num_rejected: int
    rejected: list[RejectedRow]
    """The first thousand of them."""
    new_entities: int
    first_id: int | None = None
    """The numbers of the changes that were made are from this one to ``last_id``."""
    last_id: int | None = None


def upload(
    live: LiveGraph,
    content: bytes,
    *,
    kind: UploadFormat,
    author: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> UploadResult:
    """Makes the changes of all good rows, in one transaction.

    Args:
        live: the graph.
        content: the rows, in UTF-8.
        kind: their format.
        author: who makes the changes.
        key: as of ``LiveGraph.change``.
        dry_run: say what would be done, and store nothing.

    Raises:
        DataError: no row is there.
        ConfigError: there are too many.
        ConflictError, StorageError: as of ``LiveGraph.change``.
    """
    snapshot = live.snapshot()
    checker = _Checker(snapshot)
    good: list[Change] = []
    rejected: list[RejectedRow] = []
    num_rejected = 0
    for row in read_changes(content, kind):
        checked = checker.check(*row) if isinstance(row, tuple) else row
        if isinstance(checked, Change):
            good.append(checked)
            continue
        num_rejected += 1
        if len(rejected) < MAX_LISTED:
            rejected.append(checked)
    if not good and not num_rejected:
        raise DataError("Expected rows of head, relation and tail, got none.")
    if dry_run or not good:
        named_fact = snapshot.reasoner.named_fact
        steps: list[Step] = [(change.action, named_fact(*change.fact)) for change in good]
        places = effective(snapshot.graph, steps)
        come = [steps[place][1] for place in places if steps[place][0] == "add"]
        names = {name for head, _, tail in come for name in (head, tail)}
        new = sum(name not in snapshot.graph.entities for name in names)
        counts = (len(places), len(good) - len(places), num_rejected)
        return UploadResult(snapshot.version, *counts, rejected, new)
    result = live.change(good, author=author, key=key)
    stored = result.stored
    return UploadResult(
        result.version,
        len(stored),
        len(good) - len(stored),
        num_rejected,
        rejected,
        len(result.new_entities),
        first_id=stored[0].id if stored else None,
        last_id=stored[-1].id if stored else None,
    )


def read_changes(content: bytes, kind: UploadFormat) -> Iterator[tuple[int, Change] | RejectedRow]:
    """Yields each row's line and its change, or why it is none; blank lines are passed over.

    Raises:
        ConfigError: the format is none that is known.
    """
    if kind not in get_args(UploadFormat):
        raise ConfigError(f"Expected {', '.join(get_args(UploadFormat))} as format, got {kind!r}.")
    # Bytes that are no UTF-8 become what no text has, and are found in the row where they stand.
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    rows = _read_json_lines(text) if kind == "jsonl" else _read_table(text, kind)
    for line, fields, fault in rows:
        if fault is None and any(_is_broken(value) for value in fields.values()):
            fault = "Expected UTF-8 text, got other bytes."
        yield RejectedRow(line, fault) if fault else (line, Change(**fields))


_Row = tuple[int, dict[str, Any], str | None]


def _read_table(text: str, kind: UploadFormat) -> Iterator[_Row]:
    columns: Sequence[str] | None = None
    for line, fields, fault in _read_csv(text) if kind == "csv" else _read_tsv(text):
        if columns is None and fault is None:
            named = [field.strip().lower() for field in fields]
            columns = COLUMNS
            if set(COLUMNS) <= set(named):
                columns = named
                continue
        if fault is None and len(fields) != len(columns or COLUMNS):
            fault = f"Expected {len(columns or COLUMNS)} columns, got {len(fields)}."
        given = dict(zip(columns or COLUMNS, fields, strict=False))
        yield line, _wanted({name: value or None for name, value in given.items()}), fault


def _read_tsv(text: str) -> Iterator[tuple[int, list[str], str | None]]:
    for line, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            yield line, row.removesuffix("\r").split("\t"), None


def _read_csv(text: str) -> Iterator[tuple[int, list[str], str | None]]:
    reader = csv.reader(io.StringIO(text, newline=""))
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield line, [], f"Expected a row of a CSV file, got: {error}."
            continue
        if row is None:
            return
        if row:
            yield line, row, None


def _read_json_lines(text: str) -> Iterator[_Row]:
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        try:
            content = json.loads(row)
        except (ValueError, RecursionError) as error:
            yield line, {}, f"Expected a JSON object, got: {error}."
            continue
        if isinstance(content, dict):
            yield line, _wanted(content), _wrong_type(content)
        else:
            yield line, {}, f"Expected a JSON object, got {type(content).__name__}."


def _wrong_type(content: dict[str, Any]) -> str | None:
    for name in (*COLUMNS, *OPTIONAL):
        if not isinstance(content.get(name), str | None):
            return f"Expected text as {name}, got {content[name]!r:.60}."
    return None


def _wanted(given: dict[str, Any]) -> dict[str, Any]:
    """Returns what a change is made of; what is missing is found when it is checked."""
    wanted = {name: given.get(name) or "" for name in COLUMNS}
    return wanted | {name: given[name] for name in OPTIONAL if given.get(name) is not None}


def _is_broken(value: Any) -> bool:
    if not isinstance(value, str) or value.isascii():
        return False
    return any("\udc80" <= letter <= "\udcff" for letter in value)


class _Checker:
    """Says why changes cannot be made to a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._reasoner = snapshot.reasoner
        self._faults: dict[
            str, str | None
        ] = {}  # by relation: to find near spellings takes a while

    def check(self, line: int, change: Change) -> Change | RejectedRow:
        """Returns the change, or why it cannot be made."""
        try:
            check_change(change)
            fault = self._relation_fault(change.relation)
            if fault is None:
                self._reasoner.named_fact(*change.fact)
        except UserError as error:
            fault = str(error)
        return change if fault is None else RejectedRow(line, fault)

    def _relation_fault(self, name: str) -> str | None:
        if name not in self._faults:
            self._faults[name] = None
            try:
                self._reasoner.labels.find_relation(name, self._reasoner.graph.relations)
            except UserError as error:
                self._faults[name] = str(error)
        return self._faults[name]
