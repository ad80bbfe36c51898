"""Decisions: what people think of a proposed fact; accepted ones may become facts."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from knowformer.errors import ConfigError, VocabularyError
from knowformer.live.database import Database, find_row
from knowformer.live.facts import MAX_NAME, MAX_TEXT, check_text, page_bounds
from knowformer.storage.triples_io import NamedTriple

Verdict = Literal["accept", "reject", "unsure"]


@dataclass(frozen=True)
class Decision:
    """A verdict on a proposed fact, by name or readable name."""

    head: str
    relation: str
    tail: str
    verdict: Verdict
    note: str | None = None
    rank: int | None = None
    """Of the answer that proposed the fact."""
    probability: float | None = None

    @property
    def fact(self) -> NamedTriple:
        """Returns head, relation and tail."""
        return self.head, self.relation, self.tail


@dataclass(frozen=True)
class StoredDecision:
    """A decision that was made, in the graph's own names."""

    id: int
    verdict: Verdict
    head: str
    relation: str
    tail: str
    author: str | None
    time: str
    note: str | None
    rank: int | None
    probability: float | None
    snapshot: int
    """The version of the graph that it was made on."""
    fact_id: int | None
    """The change that added the fact, if it was to become one and was not there."""
    undone: str | None = None
    """When it was taken back."""


@dataclass(frozen=True)
class DecisionPage:
    """Some decisions, newest first."""

    items: list[StoredDecision]
    next: int | None
    """``before`` of the page that follows; None: this is the last."""


def check_decision(decision: Decision) -> None:
    """Refuses what cannot be stored.

    Raises:
        ConfigError: a text is empty, too long or no Unicode, or a number cannot be.
    """
    if decision.verdict not in ("accept", "reject", "unsure"):
        raise ConfigError(
            f"Expected 'accept', 'reject' or 'unsure' as verdict, got {decision.verdict!r}."
        )
    for part in ("head", "relation", "tail"):
        check_text(getattr(decision, part), part, most=MAX_NAME, may_be_empty=False)
    check_text(decision.note, "note", most=MAX_TEXT)
    if decision.rank is not None and not 1 <= decision.rank < 2**63:
        raise ConfigError(f"Expected a rank from 1, got {decision.rank}.")
    if decision.probability is not None and not 0.0 <= decision.probability <= 1.0:
        raise ConfigError(f"Expected a probability from 0 to 1, got {decision.probability}.")


def insert_decision(
    connection: sqlite3.Connection,
    decision: Decision,
    *,
    author: str | None,
    time: str,
    snapshot: int,
    fact_id: int | None,
) -> StoredDecision:
    """Writes a decision in names of the graph, and returns it with its number."""
    row = (decision.verdict, *decision.fact, author, time, decision.note, decision.rank)
    row = (*row, decision.probability, snapshot, fact_id)
    done = connection.execute(
        "INSERT INTO decisions (verdict, head, relation, tail, author, time, note, rank, "
        "probability, snapshot, fact_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    assert done.lastrowid is not None
    return StoredDecision(done.lastrowid, *row)


def find_decision(connection: sqlite3.Connection, number: int) -> StoredDecision:
    """Returns a decision by its number.

    Raises:
        VocabularyError: there is none.
    """
    row = find_row(connection, "SELECT * FROM decisions WHERE id = ?", number)
    if row is None:
        raise VocabularyError(f"Expected the number of a decision, got {number}, which none has.")
    return _stored(row)


def take_back(
    connection: sqlite3.Connection, decision: StoredDecision, *, time: str
) -> StoredDecision:
    """Marks a decision as undone; it stays in the list."""
    if decision.undone is not None:
        return decision
    connection.execute("UPDATE decisions SET undone = ? WHERE id = ?", (time, decision.id))
    return replace(decision, undone=time)


def read_page(database: Database, *, limit: int, before: int | None) -> DecisionPage:
    """Reads decisions, newest first, that come before a number.

    Raises:
        ConfigError: the limit is none that can be.
    """
    query = "SELECT * FROM decisions WHERE id < ? ORDER BY id DESC LIMIT ?"
    found = database.rows(query, page_bounds(limit, before))
    items = [_stored(row) for row in found]
    return DecisionPage(items[:limit], items[limit - 1].id if len(items) > limit else None)


def read_decisions(database: Database) -> Iterator[StoredDecision]:
    """Yields all decisions, oldest first."""
    return map(_stored, database.rows("SELECT * FROM decisions ORDER BY id"))


def _stored(row: sqlite3.Row) -> StoredDecision:
    content: dict[str, Any] = dict(row)
    return StoredDecision(**content)


def in_names(decision: Decision, fact: NamedTriple) -> Decision:
    """Returns a decision in the graph's own names."""
    head, relation, tail = fact
    return replace(decision, head=head, relation=relation, tail=tail)
