"""Adjacency against sets of plain tuples."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import Edges

Edge = tuple[int, int, int]  # receiver, sender, relation

GraphBuilder = Callable[..., KnowledgeGraph]


def adjacency_of(
    rows: list[tuple[int, int, int]], num_entities: int, num_relations: int
) -> Adjacency:
    facts = torch.tensor(rows, dtype=torch.long).reshape(-1, 3)
    return Adjacency(facts, num_entities=num_entities, num_relations=num_relations)


def expected_edges(facts: Tensor, num_relations: int) -> set[Edge]:
    forward = {(t, h, r) for h, r, t in facts.tolist()}
    return forward | {(h, t, r + num_relations) for h, r, t in facts.tolist()}


def edges_of(adjacency: Adjacency) -> list[Edge]:
    columns = (adjacency.receiver, adjacency.sender, adjacency.relation)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def edges_for_kernels(edges: Edges) -> list[Edge]:
    """Reads the same from the form that kernels take: runs of messages, one run a receiver."""
    offsets, messages = edges.offsets.tolist(), edges.message.tolist()
    senders, relations = edges.message_sender.tolist(), edges.message_relation.tolist()
    return [
        (receiver, senders[message], relations[message])
        for receiver in range(edges.num_entities)
        for message in messages[offsets[receiver] : offsets[receiver + 1]]
    ]


@given(seed=st.integers(0, 10**6), num_facts=st.integers(0, 60))
def test_edges_are_the_facts_and_their_inverses_sorted(
    random_graph: GraphBuilder, seed: int, num_facts: int
) -> None:
    graph = random_graph(seed, num_facts=num_facts)
    adjacency = graph.adjacency
    expected = sorted(expected_edges(graph.facts, len(graph.relations)))
    assert edges_of(adjacency) == expected
    assert edges_for_kernels(adjacency.edges) == expected
    assert adjacency.num_edges == len(expected)


@given(seed=st.integers(0, 10**6))
def test_the_order_of_facts_and_their_repetition_are_irrelevant(
    random_graph: GraphBuilder, seed: int
) -> None:
    graph = random_graph(seed)
    order = torch.randperm(len(graph.facts), generator=torch.Generator().manual_seed(seed))
    again = Adjacency(
        torch.cat([graph.facts[order], graph.facts[:7]]),
        num_entities=len(graph.entities),
        num_relations=len(graph.relations),
    )
    assert edges_of(again) == edges_of(graph.adjacency)


def test_edges_that_carry_one_message_share_it(random_graph: GraphBuilder) -> None:
    graph = random_graph(1, num_facts=60)
    edges = graph.adjacency.edges
    messages = set(zip(edges.message_sender.tolist(), edges.message_relation.tolist(), strict=True))
    senders = {(v, r) for _, v, r in expected_edges(graph.facts, len(graph.relations))}
    assert messages == senders
    assert len(edges.message_sender) == len(senders)


def test_a_self_loop_is_two_edges_of_one_entity() -> None:
    assert edges_of(adjacency_of([(1, 0, 1)], 3, 2)) == [(1, 1, 0), (1, 1, 2)]


def test_an_isolated_entity_has_an_empty_run() -> None:
    edges = adjacency_of([(0, 0, 3)], 5, 1).edges
    assert edges.offsets.tolist() == [0, 1, 1, 1, 2, 2]


def test_a_graph_without_facts_has_no_edges() -> None:
    adjacency = adjacency_of([], 4, 2)
    assert adjacency.num_edges == 0
    assert adjacency.edges.offsets.tolist() == [0] * 5
    assert adjacency.without_facts(torch.tensor([[0, 0, 1]])).shape == (0,)
    assert adjacency.without_links(torch.tensor([[0, 0, 1]])).shape == (0,)


@pytest.mark.parametrize("hide", ["facts", "links"])
@given(seed=st.integers(0, 10**6), num_hidden=st.integers(0, 8))
def test_hiding_equals_building_the_graph_without(
    random_graph: GraphBuilder, hide: str, seed: int, num_hidden: int
) -> None:
    graph = random_graph(seed, num_entities=6, num_facts=40)
    num_relations = len(graph.relations)
    draw = torch.Generator().manual_seed(seed)
    hidden = graph.facts[torch.randperm(len(graph.facts), generator=draw)[:num_hidden]]
    # Questions for heads name facts by inverse relations; some facts are not in the graph at all.
    heads, relations, tails = hidden[::2].unbind(1)
    backwards = torch.stack([tails, relations + num_relations, heads], 1)
    foreign = torch.tensor([[5, 0, 5], [0, num_relations, 5]])[: num_hidden % 3]
    asked = torch.cat([hidden[1::2], backwards, foreign])

    named = {tuple(fact) for fact in hidden.tolist()}
    named |= {(h, r, t) for h, r, t in foreign.tolist() if r < num_relations}
    named |= {(t, r - num_relations, h) for h, r, t in foreign.tolist() if r >= num_relations}
    links = {frozenset((h, t)) for h, _, t in named}
    left = [
        (h, r, t)
        for h, r, t in graph.facts.tolist()
        if (frozenset((h, t)) not in links if hide == "links" else (h, r, t) not in named)
    ]
    adjacency = graph.adjacency
    kept = adjacency.without_links(asked) if hide == "links" else adjacency.without_facts(asked)
    rebuilt = adjacency_of(left, len(graph.entities), num_relations)
    assert edges_for_kernels(adjacency.edges.keep(kept)) == edges_of(rebuilt)
