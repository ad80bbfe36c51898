"""A graph that grew is the graph built anew, and the graphs before it stay what they were."""

from dataclasses import dataclass, fields

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph, number_facts
from knowformer.graph.vocabulary import Vocabulary
from knowformer.kernels.interface import Edges
from knowformer.queries.known_answers import KnownAnswers
from knowformer.storage.triples_io import NamedTriple

RELATIONS = Vocabulary(["r", "s"], kind="relation")

names = st.integers(0, 11).map(lambda number: f"e{number}")
triples = st.lists(st.tuples(names, st.sampled_from(RELATIONS.names), names), max_size=12)
uses = st.sets(st.sampled_from(["edges", "facts", "keys"]))  # what is built before the next change


@dataclass(frozen=True)
class Snapshot:
    """A graph, and its content in plain lists."""

    graph: KnowledgeGraph
    entities: list[str]
    facts: list[NamedTriple]

    def changed(self, added: list[NamedTriple], removed: list[NamedTriple]) -> "Snapshot":
        new = [t for t in dict.fromkeys(added) if t not in self.facts]
        kept = [t for t in self.facts if t not in removed or t in added]
        entities = [*self.entities, *(name for h, _, t in new for name in (h, t))]
        graph = self.graph.with_facts(added=added, removed=removed)
        return Snapshot(graph, list(dict.fromkeys(entities)), [*kept, *new])

    def use(self, parts: set[str]) -> None:
        if "edges" in parts:
            _ = self.graph.adjacency.edges
        if "facts" in parts:
            _ = self.graph.facts
        if "keys" in parts:
            _ = self.graph.entity_keys

    def check(self) -> None:
        """Compares all that is made of facts with the graph built anew."""
        entities = Vocabulary(self.entities, kind="entity")
        anew = KnowledgeGraph(entities, RELATIONS, number_facts(self.facts, entities, RELATIONS))
        graph = self.graph
        assert graph.same_as(anew)
        assert np.array_equal(graph.entity_keys, anew.entity_keys)
        assert [entities.id(name) for name in graph.entities] == list(range(len(entities)))
        for column in ("receiver", "sender", "relation"):
            assert torch.equal(getattr(graph.adjacency, column), getattr(anew.adjacency, column))
        assert graph.adjacency.by_query.layout == anew.adjacency.by_query.layout
        assert np.array_equal(graph.adjacency.by_query.keys, anew.adjacency.by_query.keys)
        assert_same_edges(graph.adjacency.edges, anew.adjacency.edges)
        num_queries = num_with_inverses(len(RELATIONS))
        queries = torch.cartesian_prod(torch.arange(len(entities)), torch.arange(num_queries))
        sizes = {"num_entities": len(entities), "num_relations": len(RELATIONS)}
        heads, relations = queries.reshape(-1, 2).unbind(1)
        found = KnownAnswers.of(graph).lookup(heads, relations)
        expected = KnownAnswers(anew.facts, **sizes).lookup(heads, relations)
        assert torch.equal(torch.stack(found), torch.stack(expected))


def assert_same_edges(edges: Edges, expected: Edges) -> None:
    for field in fields(Edges):
        value, wanted = getattr(edges, field.name), getattr(expected, field.name)
        if isinstance(wanted, Tensor):
            assert value.dtype == wanted.dtype, field.name
            assert torch.equal(value, wanted), field.name
        else:
            assert value == wanted, field.name


@given(first=triples, first_uses=uses, data=st.data())
def test_any_sequence_of_changes_gives_the_graph_built_anew(
    first: list[NamedTriple], first_uses: set[str], data: st.DataObject
) -> None:
    start = KnowledgeGraph.from_triples(first, relations=RELATIONS)
    snapshots = [Snapshot(start, list(start.entities), list(dict.fromkeys(first)))]
    snapshots[0].use(first_uses)
    for _ in range(data.draw(st.integers(1, 5))):
        # Mostly the newest one changes, now and then one before it: then there are two branches.
        before = snapshots[data.draw(st.sampled_from([-1, -1, -1, 0]))]
        removed = data.draw(st.lists(st.sampled_from(before.facts))) if before.facts else []
        snapshots.append(before.changed(data.draw(triples), removed))
        is_same = snapshots[-1].graph is before.graph
        assert snapshots[-1].graph.version == before.graph.version + (not is_same)
        snapshots[-1].use(data.draw(uses))
    for snapshot in snapshots:
        snapshot.check()


@given(first=triples, added=triples, uses_edges=st.booleans())
def test_removal_undoes_addition(
    first: list[NamedTriple], added: list[NamedTriple], uses_edges: bool
) -> None:
    graph = KnowledgeGraph.from_triples(
        first, relations=RELATIONS, more_entities=[f"e{number}" for number in range(12)]
    )
    new = [triple for triple in dict.fromkeys(added) if triple not in first]
    grown = graph.with_facts(added=new)
    if uses_edges:
        _ = grown.adjacency.edges
    back = grown.with_facts(removed=new)
    assert back.same_as(graph)
    assert_same_edges(back.adjacency.edges, graph.adjacency.edges)
