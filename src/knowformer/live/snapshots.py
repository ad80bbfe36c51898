"""LiveGraph: a stored graph that takes facts while it is asked; Snapshot: what one request sees."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from threading import Lock

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.errors import BundleError, ConfigError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.live import decisions, facts
from knowformer.live.database import Database, read_rows
from knowformer.live.decisions import Decision, DecisionPage, StoredDecision
from knowformer.live.facts import (
    MAX_AUTHOR,
    Action,
    Change,
    ChangePage,
    ChangeResult,
    StoredChange,
    check_text,
)
from knowformer.live.requests import check_key, digest_of, earlier_result, keep_result, utc_now
from knowformer.reasoner import Reasoner
from knowformer.storage.triples_io import NamedTriple

STORE_FILE = "live.sqlite"  # in a run folder, unless another place is chosen
GRAPH = "graph"  # in the table of what a store is: a checksum of the graph that it changes
CHUNK = 10_000  # changes that are looked up at once
MAX_CHANGES = 1_000_000  # of one request


@dataclass(frozen=True)
class Snapshot:
    """The graph as it was after a change; what is asked of it does not change any more."""

    version: int
    """The number of the last change; 0: the graph as it was loaded."""
    reasoner: Reasoner
    base: KnowledgeGraph
    """The graph as it was loaded."""
    added: int = 0
    """Facts that the base does not have."""
    removed: int = 0
    """Facts that only the base has."""

    @property
    def graph(self) -> KnowledgeGraph:
        """Returns the facts that answers are made from."""
        return self.reasoner.graph

    def are_live(self, numbered: Int[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        """Returns which facts of this snapshot, in its ids, the base does not have."""
        old = (numbered[:, [0, 2]] < len(self.base.entities)).all(1)
        live = torch.ones(len(numbered), dtype=torch.bool)
        live[old] = ~self.base.adjacency.has_fact(numbered[old])
        return live

    def changed(self, made: Sequence[StoredChange]) -> "Snapshot":
        """Returns the snapshot after changes, each of which has an effect."""
        if not made:
            return self
        graph, come, gone = _apply(self.graph, [(change.action, change.fact) for change in made])
        is_base = self.base.holds([change.fact for change in made])
        steps = [1 if change.action == "add" else -1 for change in made]
        pairs = list(zip(steps, is_base, strict=True))
        return Snapshot(
            made[-1].id,
            self.reasoner.on_snapshot(graph, added=come, removed=gone),
            self.base,
            self.added + sum(step for step, of_base in pairs if not of_base),
            self.removed - sum(step for step, of_base in pairs if of_base),
        )


class LiveGraph:
    """A graph with a store: changes are durable once made, and the next snapshot has them.

    Several threads may use it. One process opens a store at a time.
    """

    def __init__(self, database: Database, newest: Snapshot) -> None:
        """Takes an open store and the snapshot that it has come to; use ``open``."""
        self._database = database
        self._newest = newest
        self._lock = Lock()

    @classmethod
    def open(cls, reasoner: Reasoner, path: Path) -> "LiveGraph":
        """Opens a store, or makes one, and brings the reasoner's graph to its last change.

        Args:
            reasoner: a model on the graph that the changes are made to.
            path: the store's file, such as ``RUN/live.sqlite``.

        Raises:
            BundleError: another process has it open, it is no store or of a newer version, or it
                belongs to another graph.
            StorageError: it cannot be written.
        """
        database = Database(path)
        try:
            _check_graph(database, reasoner)
            base = Snapshot(0, reasoner, reasoner.graph)
            made = list(facts.read_changes(database))
            places = effective(base.graph, [(change.action, change.fact) for change in made])
            newest = base.changed([made[place] for place in places])
            version = made[-1].id if made else 0
            return cls(
                database,
                Snapshot(version, newest.reasoner, base.graph, newest.added, newest.removed),
            )
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Closes the store once a change under way is over; snapshots stay as they are."""
        with self._lock:
            self._database.close()

    def snapshot(self) -> Snapshot:
        """Returns the newest snapshot."""
        return self._newest

    def change(
        self, changes: Sequence[Change], *, author: str | None = None, key: str | None = None
    ) -> ChangeResult:
        """Adds and removes facts, in one transaction: all are durable on return, or none is made.

        Args:
            changes: entities may be new; a fact that is there, or one to remove that is not there,
                is left as it is.
            author: who makes them.
            key: of the request: made again with the same key, it does nothing and gets the same
                result.

        Raises:
            VocabularyError: a relation is not among the model's.
            ConfigError: a text is empty, too long or no Unicode.
            ConflictError: the key was used for another request.
            StorageError: the disk is full or failing.
        """
        if not 1 <= len(changes) <= MAX_CHANGES:
            raise ConfigError(f"Expected 1 to {MAX_CHANGES:,} changes, got {len(changes):,}.")
        for change in changes:
            facts.check_change(change)
        check_text(author, "author", most=MAX_AUTHOR)
        check_key(key)
        digest = digest_of(["change", author, [asdict(change) for change in changes]])
        with self._lock:
            with self._database.transaction() as connection:
                if earlier := earlier_result(connection, key, digest):
                    found = facts.find_changes(connection, earlier["changes"])
                    entities = tuple(earlier["new_entities"])
                    return ChangeResult(earlier["version"], tuple(found), entities, repeated=True)
                newest, result = self._make(connection, changes, author=author)
                content = {
                    "version": result.version,
                    "changes": [change and change.id for change in result.changes],
                    "new_entities": result.new_entities,
                }
                keep_result(connection, key, digest, content, time=utc_now())
            self._newest = newest
        return result

    def undo(self, change_id: int, *, author: str | None = None) -> ChangeResult:
        """Takes a change back, by another change; one that is undone already is left as it is.

        Raises:
            VocabularyError: there is no such change.
            ConflictError: a later change is about the same fact.
            StorageError: the disk is full or failing.
        """
        check_text(author, "author", most=MAX_AUTHOR)
        with self._lock:
            with self._database.transaction() as connection:
                newest, result = self._undo(connection, change_id, author=author)
            self._newest = newest
        return result

    def changes(self, *, limit: int = 50, before: int | None = None) -> ChangePage:
        """Returns changes, newest first, that come before a number."""
        return facts.read_page(self._database, limit=limit, before=before)

    def changes_in_force(self, snapshot: Snapshot) -> Iterator[StoredChange]:
        """Yields the changes that tell a snapshot from the graph as it was loaded, oldest first."""
        last = facts.read_last_changes(self._database, snapshot.version)
        while some := list(islice(last, CHUNK)):
            is_base = snapshot.base.holds([change.fact for change in some])
            for change, of_base in zip(some, is_base, strict=True):
                if (change.action == "add") != of_base:
                    yield change

    def every_decision(self) -> Iterator[StoredDecision]:
        """Yields all decisions, oldest first."""
        return decisions.read_decisions(self._database)

    def decide(
        self,
        decision: Decision,
        *,
        author: str | None = None,
        add_fact: bool = False,
        key: str | None = None,
    ) -> tuple[StoredDecision, int]:
        """Stores a verdict on a proposed fact; returns it and the version of the graph then.

        Args:
            decision: the verdict.
            author: who gives it.
            add_fact: add the fact as well, in the same transaction.
            key: as of ``change``.

        Raises:
            VocabularyError, ConfigError, ConflictError, StorageError: as of ``change``.
        """
        decisions.check_decision(decision)
        check_text(author, "author", most=MAX_AUTHOR)
        check_key(key)
        if add_fact and decision.verdict != "accept":
            raise ConfigError(
                f"Expected the verdict 'accept' to add the fact, got {decision.verdict!r}."
            )
        digest = digest_of(["decide", author, add_fact, asdict(decision)])
        with self._lock:
            newest = self._newest
            with self._database.transaction() as connection:
                if earlier := earlier_result(connection, key, digest):
                    found = decisions.find_decision(connection, earlier["decision"])
                    return found, earlier["version"]
                fact_id = None
                if add_fact:
                    change = Change(*decision.fact, "add", why=decision.note, source="decision")
                    newest, result = self._make(connection, [change], author=author)
                    fact_id = result.stored[0].id if result.stored else None
                named = newest.reasoner.named_fact(*decision.fact)
                stored = decisions.insert_decision(
                    connection,
                    decisions.in_names(decision, named),
                    author=author,
                    time=utc_now(),
                    snapshot=self._newest.version,
                    fact_id=fact_id,
                )
                content = {"decision": stored.id, "version": newest.version}
                keep_result(connection, key, digest, content, time=stored.time)
            self._newest = newest
        return stored, newest.version

    def undo_decision(
        self, decision_id: int, *, author: str | None = None
    ) -> tuple[StoredDecision, int]:
        """Takes a decision back, and the fact that it added; returns it and the version then.

        Raises:
            VocabularyError: there is no such decision.
            ConflictError: a later change is about its fact.
            StorageError: the disk is full or failing.
        """
        check_text(author, "author", most=MAX_AUTHOR)
        with self._lock:
            newest = self._newest
            with self._database.transaction() as connection:
                decision = decisions.find_decision(connection, decision_id)
                if decision.fact_id is not None and decision.undone is None:
                    newest, _ = self._undo(connection, decision.fact_id, author=author)
                undone = decisions.take_back(connection, decision, time=utc_now())
            self._newest = newest
        return undone, newest.version

    def decisions(self, *, limit: int = 50, before: int | None = None) -> DecisionPage:
        """Returns decisions, newest first, that come before a number."""
        return decisions.read_page(self._database, limit=limit, before=before)

    def _make(
        self,
        connection: sqlite3.Connection,
        changes: Sequence[Change],
        *,
        author: str | None,
        undoes: int | None = None,
    ) -> tuple[Snapshot, ChangeResult]:
        """Writes the changes that have an effect, and returns the snapshot after them."""
        before = self._newest
        named = [facts.in_names(each, before.reasoner.named_fact(*each.fact)) for each in changes]
        places = effective(before.graph, [(change.action, change.fact) for change in named])
        made = facts.insert_changes(
            connection,
            [named[place] for place in places],
            author=author,
            time=utc_now(),
            undoes=undoes,
        )
        after = before.changed(made)
        outcome = dict(zip(places, made, strict=True))
        first_new, last = len(before.graph.entities), len(after.graph.entities)
        return after, ChangeResult(
            after.version,
            tuple(outcome.get(place) for place in range(len(changes))),
            tuple(after.graph.entities.name(number) for number in range(first_new, last)),
        )

    def _undo(
        self, connection: sqlite3.Connection, change_id: int, *, author: str | None
    ) -> tuple[Snapshot, ChangeResult]:
        (change,) = facts.find_changes(connection, [change_id])
        assert change is not None
        if change.undone:
            return self._newest, ChangeResult(self._newest.version, (None,))
        opposite = facts.undoing(connection, change)
        return self._make(connection, [opposite], author=author, undoes=change.id)


Step = tuple[Action, NamedTriple]
"""What is done to a fact, in the graph's own names."""


def effective(graph: KnowledgeGraph, steps: Sequence[Step]) -> list[int]:
    """Returns the places of the steps that change something, made one after the other."""
    distinct = list(dict.fromkeys(fact for _, fact in steps))
    is_there = dict(zip(distinct, graph.holds(distinct), strict=True))
    places: list[int] = []
    for place, (action, fact) in enumerate(steps):
        if is_there[fact] != (action == "add"):
            is_there[fact] = action == "add"
            places.append(place)
    return places


def _apply(
    graph: KnowledgeGraph, steps: Sequence[Step]
) -> tuple[KnowledgeGraph, list[NamedTriple], list[NamedTriple]]:
    """Returns the graph after steps that each change something, and what came and went in all.

    Ids and the order of facts are those of steps made one at a time, so that a store that is opened
    again gives the same graph.
    """
    come: dict[NamedTriple, None] = {}
    gone: dict[NamedTriple, None] = {}
    names: dict[str, None] = {}
    for action, fact in steps:
        if action == "add":
            come[fact] = None
            names |= {fact[0]: None, fact[2]: None}
        elif fact in come:
            del come[fact]
        else:
            gone[fact] = None
    if come and gone:
        graph = graph.with_facts(removed=gone)
    graph = graph.with_facts(come, () if come else gone, more_entities=names)
    return graph, [fact for fact in come if fact not in gone], [f for f in gone if f not in come]


def graph_of_store(path: Path) -> str | None:
    """Returns the checksum of the graph that a store, perhaps in use, has changes of.

    Raises:
        BundleError: there is none, or none that can be read.
    """
    rows = read_rows(path, "SELECT value FROM store WHERE name = ?", (GRAPH,))
    return next((row["value"] for row in rows), None)


def _check_graph(database: Database, reasoner: Reasoner) -> None:
    """Notes which graph a new store belongs to; an old one must belong to this graph.

    Raises:
        BundleError: it belongs to another.
    """
    own = reasoner.graph_fingerprint()
    with database.transaction() as connection:
        found = connection.execute("SELECT value FROM store WHERE name = ?", (GRAPH,)).fetchone()
        if found is None:
            connection.execute("INSERT INTO store (name, value) VALUES (?, ?)", (GRAPH, own))
        elif found["value"] != own:
            raise BundleError(
                f"Expected a store of changes to this graph at {database.path}, got one of changes "
                "to another. Choose another `store`."
            )
