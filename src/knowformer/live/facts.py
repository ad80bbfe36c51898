"""Changes of facts: what was added and removed, by whom, when, why and on what source.

Changes are never altered: one that is undone stays, and another that undoes it follows.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from knowformer.errors import ConfigError, ConflictError, VocabularyError
from knowformer.live.database import Database, find_row, read_rows
from knowformer.storage.triples_io import NamedTriple

Action = Literal["add", "remove"]

MAX_NAME = 2000  # characters of an entity's name
MAX_AUTHOR = 200
MAX_TEXT = 10_000  # of a reason, a note or a source
MAX_PAGE = 1000

LARGEST = 2**63 - 1  # number of a row

_COLUMNS = "c.*, (SELECT u.id FROM changes u WHERE u.undoes = c.id) AS undone_by"
_LAST = (
    f"SELECT {_COLUMNS} FROM changes c WHERE c.id <= ?1 AND NOT EXISTS (SELECT 1 FROM changes l "
    "WHERE l.head = c.head AND l.relation = c.relation AND l.tail = c.tail AND l.id > c.id AND "
    "l.id <= ?1) ORDER BY c.id"
)


@dataclass(frozen=True)
class Change:
    """A fact to add or to remove, by name or readable name."""

    head: str
    relation: str
    tail: str
    action: Action = "add"
    why: str | None = None
    source: str | None = None

    @property
    def fact(self) -> NamedTriple:
        """Returns head, relation and tail."""
        return self.head, self.relation, self.tail


@dataclass(frozen=True)
class StoredChange:
    """A change that was made, in the graph's own names; its number is that of a snapshot."""

    id: int
    action: Action
    head: str
    relation: str
    tail: str
    author: str | None
    time: str
    """UTC, ISO 8601."""
    why: str | None
    source: str | None
    undoes: int | None = None
    """The change that this one undoes."""
    undone_by: int | None = None
    """The change that undoes this one."""

    @property
    def fact(self) -> NamedTriple:
        """Returns head, relation and tail."""
        return self.head, self.relation, self.tail

    @property
    def undone(self) -> bool:
        """Whether a later change undoes this one."""
        return self.undone_by is not None


@dataclass(frozen=True)
class ChangeResult:
    """What became of the changes of one request."""

    version: int
    """The snapshot that has them all."""
    changes: tuple[StoredChange | None, ...]
    """One for each that was asked for; None: the fact was there already, or was not there."""
    new_entities: tuple[str, ...] = ()
    """Entities that the graph did not have before."""
    repeated: bool = False
    """The request came before, with the same key, and was not made again."""

    @property
    def stored(self) -> tuple[StoredChange, ...]:
        """Returns the changes that were made."""
        return tuple(change for change in self.changes if change is not None)


@dataclass(frozen=True)
class ChangePage:
    """Some changes, newest first."""

    items: list[StoredChange]
    next: int | None
    """``before`` of the page that follows; None: this is the last."""


def check_change(change: Change) -> None:
    """Refuses what cannot be stored.

    Raises:
        ConfigError: a text is empty, too long or no Unicode, or the action is none.
    """
    if change.action not in ("add", "remove"):
        raise ConfigError(f"Expected 'add' or 'remove' as action, got {change.action!r}.")
    for part in ("head", "relation", "tail"):
        check_text(getattr(change, part), part, most=MAX_NAME, may_be_empty=False)
    check_text(change.why, "why", most=MAX_TEXT)
    check_text(change.source, "source", most=MAX_TEXT)


def check_text(text: str | None, what: str, *, most: int, may_be_empty: bool = True) -> None:
    """Refuses a text that is too long, no Unicode, or blank if it must not be.

    Raises:
        ConfigError: it is.
    """
    if text is None and may_be_empty:
        return
    if text is None or not (may_be_empty or text.strip()):
        raise ConfigError(f"Expected a name as {what}, got {text!r}.")
    if len(text) > most:
        raise ConfigError(
            f"Expected at most {most:,} characters as {what}, got {len(text):,}: {text[:40]!r}..."
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"Expected Unicode text as {what}, got half of a surrogate pair in {text[:40]!r}."
        ) from None


def insert_changes(
    connection: sqlite3.Connection,
    changes: Sequence[Change],
    *,
    author: str | None,
    time: str,
    undoes: int | None = None,
) -> list[StoredChange]:
    """Writes changes in names of the graph, and returns them with their numbers."""
    stored: list[StoredChange] = []
    for change in changes:
        row = (change.action, *change.fact, author, time, change.why, change.source, undoes)
        done = connection.execute(
            "INSERT INTO changes (action, head, relation, tail, author, time, why, source, undoes) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        assert done.lastrowid is not None
        stored.append(StoredChange(done.lastrowid, *row))
    return stored


def read_page(database: Database, *, limit: int, before: int | None) -> ChangePage:
    """Reads changes, newest first, that come before a number.

    Raises:
        ConfigError: the limit is none that can be.
    """
    query = f"SELECT {_COLUMNS} FROM changes c WHERE c.id < ? ORDER BY c.id DESC LIMIT ?"
    found = database.rows(query, page_bounds(limit, before))
    items = [_stored(row) for row in found]
    return ChangePage(items[:limit], items[limit - 1].id if len(items) > limit else None)


def page_bounds(limit: int, before: int | None) -> tuple[int, int]:
    """Returns the number that a page stays below, and how many rows to read: one more than shown.

    Raises:
        ConfigError: the page would have no size, or too large a one.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise ConfigError(f"Expected a limit from 1 to {MAX_PAGE:,}, got {limit:,}.")
    return LARGEST if before is None else max(0, min(before, LARGEST)), limit + 1


def read_changes(database: Database) -> Iterator[StoredChange]:
    """Yields all changes, oldest first."""
    rows = database.rows(f"SELECT {_COLUMNS} FROM changes c ORDER BY c.id")
    return map(_stored, rows)


def read_last_changes(database: Database, version: int) -> Iterator[StoredChange]:
    """Yields the last change of every fact up to a version, oldest first."""
    return map(_stored, database.rows(_LAST, (version,)))


def read_last_changes_of(path: Path) -> Iterator[StoredChange]:
    """Yields the last change of every fact of a store that another process may have open.

    Raises:
        BundleError: there is none, or none that can be read.
    """
    return map(_stored, read_rows(path, _LAST, (LARGEST,)))


def find_changes(
    connection: sqlite3.Connection, ids: Iterable[int | None]
) -> list[StoredChange | None]:
    """Returns changes by their numbers.

    Raises:
        VocabularyError: there is none of a number.
    """
    found: list[StoredChange | None] = []
    for number in ids:
        if number is None:
            found.append(None)
            continue
        row = find_row(connection, f"SELECT {_COLUMNS} FROM changes c WHERE c.id = ?", number)
        if row is None:
            raise VocabularyError(f"Expected the number of a change, got {number}, which none has.")
        found.append(_stored(row))
    return found


def undoing(connection: sqlite3.Connection, change: StoredChange) -> Change:
    """Returns the change that takes another back.

    Raises:
        ConflictError: a later change is about the same fact: that one has to be undone first.
    """
    (latest,) = connection.execute(
        "SELECT max(id) FROM changes WHERE head = ? AND relation = ? AND tail = ?", change.fact
    ).fetchone()
    if latest != change.id:
        raise ConflictError(
            f"Expected the last change of {change.fact} to undo, which is {latest}, got "
            f"{change.id}. Undo {latest} instead."
        )
    opposite: Action = "remove" if change.action == "add" else "add"
    return Change(*change.fact, opposite, why=f"undoes {change.id}")


def _stored(row: sqlite3.Row) -> StoredChange:
    content: dict[str, Any] = dict(row)
    return StoredChange(**content)


def in_names(change: Change, fact: NamedTriple) -> Change:
    """Returns a change in the graph's own names."""
    head, relation, tail = fact
    return replace(change, head=head, relation=relation, tail=tail)
