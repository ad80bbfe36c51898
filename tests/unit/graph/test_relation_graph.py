from collections.abc import Iterator
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from knowformer.graph import relation_graph as module
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.relation_graph import (
    MEETINGS,
    NUM_LEVELS,
    NUM_MEETING_KINDS,
    RelationGraph,
    build_relation_graph,
    relation_graph,
)

NUM_ENTITIES, NUM_RELATIONS = 6, 4

Meeting = tuple[int, str, int, int, int]  # relation, how, level of the first and second, relation


def adjacency(facts: list[tuple[int, int, int]]) -> Adjacency:
    rows = torch.tensor(facts, dtype=torch.long).reshape(-1, 3)
    return Adjacency(rows, num_entities=NUM_ENTITIES, num_relations=NUM_RELATIONS)


def found(graph: RelationGraph) -> list[Meeting]:
    """The edges in words, each relation by its own number."""
    meetings: list[Meeting] = []
    for relation in range(2 * NUM_RELATIONS):
        node, start = int(graph.place[relation]), int(graph.start[relation])
        for edge in range(int(graph.edges.offsets[node]), int(graph.edges.offsets[node + 1])):
            sender = int(graph.relations[int(graph.edges.sender[edge]) + start])
            kind = int(graph.edges.relation[edge])
            how, levels = divmod(kind, NUM_LEVELS**2)
            meetings.append((sender, MEETINGS[how], *divmod(levels, NUM_LEVELS), relation))
    return sorted(meetings)


def expected(facts: list[tuple[int, int, int]]) -> Iterator[Meeting]:
    """The plain version: sets of entities and pairs."""
    directed = {*facts, *((t, (r + NUM_RELATIONS) % (2 * NUM_RELATIONS), h) for h, r, t in facts)}
    ends: dict[tuple[str, int], set[object]] = {}
    for head, relation, tail in directed:
        for end, thing in (("head", head), ("tail", tail), ("pair", (head, tail))):
            ends.setdefault((end, relation), set()).add(thing)
    for (end, first), (other, second) in product(ends, ends):
        how = f"{end}-{other}"
        shared = len(ends[end, first] & ends[other, second])
        if how in MEETINGS and shared and (first != second or end != other):
            levels = (
                sum(shared / len(ends[key]) >= limit for limit in (0.1, 0.5))
                for key in ((end, first), (other, second))
            )
            yield (first, how, *levels, second)  # pyright: ignore[reportReturnType]


FACTS = st.lists(
    st.tuples(
        st.integers(0, NUM_ENTITIES - 1),
        st.integers(0, NUM_RELATIONS - 1),
        st.integers(0, NUM_ENTITIES - 1),
    ),
    max_size=20,
)


@given(FACTS)
def test_edges_say_how_relations_meet(facts: list[tuple[int, int, int]]) -> None:
    assert found(build_relation_graph(adjacency(facts))) == sorted(expected(facts))


def test_counting_in_many_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [(i % 6, i % 4, (i * i) % 6) for i in range(18)]
    whole = build_relation_graph(adjacency(facts))
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 3)
    assert found(build_relation_graph(adjacency(facts))) == found(whole)


def test_relations_that_never_meet_are_in_components_of_their_own() -> None:
    graph = build_relation_graph(adjacency([(0, 0, 1), (1, 2, 2), (3, 1, 4)]))
    components = {
        frozenset(graph.relations[graph.start[r] : graph.stop[r]].tolist())
        for r in range(2 * NUM_RELATIONS)
    }
    # A relation and its inverse belong together, unless it has no fact at all.
    assert components == {
        frozenset({0, 4, 2, 6}),
        frozenset({1, 5}),
        frozenset({3}),
        frozenset({7}),
    }


def test_kinds_are_within_their_number() -> None:
    graph = build_relation_graph(adjacency([(0, 0, 0), (0, 1, 0), (1, 0, 0)]))
    assert graph.edges.num_relations == NUM_MEETING_KINDS
    assert int(graph.edges.relation.max()) < NUM_MEETING_KINDS


def test_it_is_made_once_for_an_adjacency() -> None:
    graph = adjacency([(0, 0, 1)])
    assert relation_graph(graph) is relation_graph(graph)
