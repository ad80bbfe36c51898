"""Changes that are made, repeated, refused and undone, and the snapshots that they leave."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch

from knowformer import Reasoner
from knowformer.answering.results import Answers
from knowformer.errors import BundleError, ConfigError, ConflictError, VocabularyError
from knowformer.graph.knowledge_graph import number_facts
from knowformer.live.decisions import Decision
from knowformer.live.facts import Change
from knowformer.live.snapshots import LiveGraph

NEW = Change("place00", "skip", "guest", why="seen", source="diary")


@pytest.fixture
def live(reasoner: Reasoner, tmp_path: Path) -> Iterator[LiveGraph]:
    with closing(LiveGraph.open(reasoner, tmp_path / "live.sqlite")) as opened:
        yield opened


def known_tails(reasoner: Reasoner) -> set[str]:
    answers = reasoner.answer(head="place00", relation="skip", k=99).answers
    return {answer.name for answer in answers if answer.known}


def test_a_change_makes_a_snapshot_and_leaves_the_one_before(live: LiveGraph) -> None:
    before = live.snapshot()
    result = live.change([NEW], author="Ann")
    (stored,) = result.stored
    assert (stored.id, stored.author, stored.why, stored.source) == (1, "Ann", "seen", "diary")
    assert (result.version, result.new_entities, result.repeated) == (1, ("guest",), False)
    after = live.snapshot()
    assert (before.version, after.version) == (0, 1)
    assert known_tails(after.reasoner) == known_tails(before.reasoner) | {"guest"}
    assert "guest" not in before.graph.entities
    numbered = number_facts([NEW.fact], after.graph.entities, after.graph.relations)
    facts = torch.cat([before.graph.facts, numbered])
    assert after.are_live(facts).tolist() == [False] * len(before.graph.facts) + [True]


def test_a_snapshot_that_nobody_needs_goes_without_the_collector(live: LiveGraph) -> None:
    live.change([NEW])
    snapshot = live.snapshot()
    snapshot.reasoner.answer(head="place00", relation="skip", typical=True)
    snapshot.reasoner.answer(head="place00", tail="place03")
    snapshot.reasoner.explain(head="place00", relation="skip", tail="guest")
    is_left = weakref.ref(snapshot.graph)
    gc.disable()
    try:
        del snapshot
        live.undo(1)
        assert is_left() is None, "its arrays, large ones, stay until the collector comes"
    finally:
        gc.enable()


def test_what_is_there_already_or_not_there_is_left_as_it_is(live: LiveGraph) -> None:
    steps = [NEW, NEW, Change("nobody", "next", "place01", "remove")]
    result = live.change(steps)
    assert [change and change.id for change in result.changes] == [1, None, None]
    assert "nobody" not in live.snapshot().graph.entities
    # By readable names it is the same fact.
    first = Change("place03", "next", "guest")
    assert live.change([first]).version == 2
    again = live.change([Change("Rome", "is followed by", "guest")])
    assert (again.version, again.changes, live.snapshot().version) == (2, (None,), 2)


def test_one_bad_change_keeps_all_from_being_made(live: LiveGraph) -> None:
    bad = Change("place00", "nxt", "place01")
    with pytest.raises(VocabularyError, match=r"'nxt'\. Did you mean 'next'"):
        live.change([NEW, bad])
    assert (live.snapshot().version, live.changes().items) == (0, [])
    with pytest.raises(ConfigError, match="Expected 1 to 1,000,000 changes, got 0"):
        live.change([])


def test_a_request_with_a_key_is_made_once(live: LiveGraph) -> None:
    first = live.change([NEW], author="Ann", key="k")
    live.undo(1)
    again = live.change([NEW], author="Ann", key="k")
    assert again.repeated
    assert (again.version, again.new_entities) == (first.version, first.new_entities)
    assert [change.id for change in again.stored] == [1]
    assert live.snapshot().version == 2
    with pytest.raises(ConflictError, match="new idempotency key"):
        live.change([NEW], author="Bob", key="k")


def test_undoing_goes_back_and_forth(live: LiveGraph) -> None:
    old = live.snapshot().graph
    gone = Change("place00", "next", "place01", "remove")
    live.change([gone] if old.holds([gone.fact])[0] else [NEW])
    done = live.undo(1, author="Bob")
    assert [(change.undoes, change.author) for change in done.stored] == [(1, "Bob")]
    assert torch.equal(live.snapshot().graph.adjacency.receiver, old.adjacency.receiver)
    assert (live.snapshot().added, live.snapshot().removed) == (0, 0)
    assert live.undo(1).changes == (None,)
    live.undo(2)
    newest, second, first = live.changes().items
    assert (first.undone, second.undone, newest.undone) == (True, True, False)
    with pytest.raises(VocabularyError, match="got 4, which none has"):
        live.undo(4)


def test_a_store_opened_again_gives_the_same_snapshot(
    reasoner: Reasoner, live: LiveGraph, tmp_path: Path
) -> None:
    graph = live.snapshot().graph
    entities, relations = graph.entities.names, graph.relations.names
    base = [(entities[h], relations[r], entities[t]) for h, r, t in graph.facts[:2].tolist()]
    live.change([Change(*fact, "remove") for fact in base])
    live.change([Change("guest", "next", "host"), Change("guest", "next", "host", "remove")])
    live.change([Change(*base[0]), NEW, Change("later", "skip", "guest")])
    last = live.snapshot()
    live.close()
    with closing(LiveGraph.open(reasoner, tmp_path / "live.sqlite")) as again:
        found = again.snapshot()
    assert (found.version, found.added, found.removed) == (7, 2, 1)
    assert (last.version, last.added, last.removed) == (7, 2, 1)
    assert "host" in found.graph.entities
    assert found.graph.same_as(last.graph)
    assert every_answer(found.reasoner) == every_answer(last.reasoner)


def every_answer(reasoner: Reasoner) -> list[Answers]:
    questions = [(name, "skip", None) for name in reasoner.graph.entities]
    return list(reasoner.answer_many(questions, k=99))


def test_a_store_of_another_graph_is_refused(
    reasoner: Reasoner, live: LiveGraph, tmp_path: Path
) -> None:
    live.close()
    other = reasoner.with_facts([("place00", "next", "guest")])
    with pytest.raises(BundleError, match="got one of changes to another"):
        LiveGraph.open(other, tmp_path / "live.sqlite")
    LiveGraph.open(reasoner, tmp_path / "live.sqlite").close()


def test_an_accepted_proposal_becomes_a_fact_if_asked_and_goes_when_it_is_taken_back(
    live: LiveGraph,
) -> None:
    proposal = Decision("place00", "skip", "guest", "accept", note="sure", rank=1, probability=0.5)
    with pytest.raises(ConfigError, match="verdict 'accept' to add the fact, got 'reject'"):
        live.decide(Decision("a", "next", "b", "reject"), add_fact=True)
    noted, version = live.decide(proposal)
    assert (noted.fact_id, version) == (None, 0)
    added, version = live.decide(proposal, author="Ann", add_fact=True, key="k")
    assert (added.fact_id, added.snapshot, version) == (1, 0, 1)
    assert live.decide(proposal, author="Ann", add_fact=True, key="k") == (added, 1)
    assert (live.changes().items[0].why, live.changes().items[0].author) == ("sure", "Ann")
    undone, version = live.undo_decision(added.id)
    assert undone.undone is not None
    assert (version, live.snapshot().added) == (2, 0)
    assert live.undo_decision(added.id) == (undone, 2)
    assert [decision.id for decision in live.decisions().items] == [2, 1]
