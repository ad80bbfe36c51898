"""The compiled extraction agrees with the reference to the last unit."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views._compiled_edges import MANY_EDGES
from knowformer.views.cpu import CompiledExtraction
from knowformer.views.queries import Hide
from knowformer.views.reference import ReferenceExtraction
from knowformer.views.settings import Rules, ViewSettings
from tests.unit.views.asking import ask, queries, ranks_of, same_edges

GraphBuilder = Callable[..., KnowledgeGraph]


def check(graph: KnowledgeGraph, settings: ViewSettings, seed: int, hide: Hide | None) -> None:
    rules, ranks = Rules.of(settings), ranks_of(graph)
    asked = queries(graph, ask(graph, seed, hide))
    compiled = CompiledExtraction(
        graph.adjacency, ranks, rules, lambda f, items: list(map(f, items))
    )
    found = compiled.extract(asked, outside=True)
    expected = ReferenceExtraction(graph.adjacency, ranks, rules).extract(asked, outside=True)
    assert [own.tolist() for own in found.members] == [own.tolist() for own in expected.members]
    assert same_edges(found.edges, expected.edges)
    for mine, other in zip(found.outside, expected.outside, strict=True):
        assert mine.entities.tolist() == other.entities.tolist()
        assert mine.scores.tolist() == other.scores.tolist()
    inside = compiled.extract(asked, outside=False)  # it looks at fewer tails
    assert [own.tolist() for own in inside.members] == [own.tolist() for own in expected.members]
    assert same_edges(inside.edges, expected.edges)


@pytest.mark.parametrize("hide", [None, "facts", "links"])
@given(
    seed=st.integers(0, 10**6),
    num_entities=st.integers(2, 40),
    num_facts=st.integers(1, 120),
    size=st.integers(1, 40),
    tolerance=st.sampled_from([1e-6, 0.05, 1.0, 30.0]),
    prior_weight=st.sampled_from([0.0, 0.3, 5.0]),
)
def test_it_finds_what_the_reference_finds(
    random_graph: GraphBuilder,
    hide: Hide | None,
    seed: int,
    num_entities: int,
    num_facts: int,
    size: int,
    tolerance: float,
    prior_weight: float,
) -> None:
    graph = random_graph(seed, num_entities=num_entities, num_facts=num_facts)
    settings = ViewSettings(size=size, tolerance=tolerance, prior_weight=prior_weight)
    check(graph, settings, seed, hide)


@pytest.mark.parametrize("hide", [None, "facts", "links"])
@given(seed=st.integers(0, 10**6), size=st.integers(1, 8))
def test_messages_of_hubs_are_searched_with_the_same_result(
    random_graph: GraphBuilder, hide: Hide | None, seed: int, size: int
) -> None:
    graph = random_graph(seed, num_entities=300, num_relations=1, num_facts=2000)
    hub = graph.facts.clone()
    hub[::2, 0] = 7
    hub[1::3, 2] = 9
    hubs = KnowledgeGraph(graph.entities, graph.relations, hub.unique(dim=0))
    longest = hubs.adjacency.edges.message_offsets.diff().max()
    assert longest > MANY_EDGES * size
    check(hubs, ViewSettings(size=size), seed, hide)
