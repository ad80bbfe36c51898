"""The search against walking every path there is, on small random graphs."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.paths import Floats, find_paths
from knowformer.graph.knowledge_graph import KnowledgeGraph

NUM_HOPS = 4


def all_paths(graph: EvidenceGraph, head: int, answer: int) -> Iterator[tuple[int, ...]]:
    """Every path of at most ``NUM_HOPS`` edges that visits no entity twice."""

    def walk(edges: tuple[int, ...], at: int, visited: set[int]) -> Iterator[tuple[int, ...]]:
        if at == answer:
            yield edges
        elif len(edges) < NUM_HOPS:
            for edge in np.flatnonzero(graph.sender == at).tolist():
                end = int(graph.receiver[edge])
                if end not in visited:
                    yield from walk((*edges, edge), end, visited | {end})

    yield from walk((), head, {head})


def width(hops: Floats, edges: tuple[int, ...], first_hop: int = 0) -> float:
    """The weakest message in the hops that suit the path best, by trying them all."""
    if not edges:
        return np.inf
    last = len(hops) - len(edges) + 1
    return max(
        (
            min(hops[hop, edges[0]], width(hops, edges[1:], hop + 1))
            for hop in range(first_hop, last)
        ),
        default=-np.inf,
    )


@given(seed=st.integers(0, 10_000))
def test_the_widest_paths_are_found(random_graph: Callable[..., KnowledgeGraph], seed: int) -> None:
    graph = EvidenceGraph(random_graph(seed, num_entities=7, num_facts=10).adjacency.edges)
    random = np.random.default_rng(seed)
    hops = random.normal(0.2, 1.0, size=(NUM_HOPS, len(graph.sender)))
    facts = np.ones(graph.num_facts)
    expected = {edges: wide for edges in all_paths(graph, 0, 1) if (wide := width(hops, edges)) > 0}
    few = find_paths(graph, hops, facts, head=0, answer=1, count=3, max_length=NUM_HOPS)
    widest = sorted(expected.values(), reverse=True)[:3]
    assert sorted((path.width for path in few), reverse=True) == pytest.approx(widest)
    found = find_paths(graph, hops, facts, head=0, answer=1, count=10_000, max_length=NUM_HOPS)
    assert {path.edges: path.width for path in found} == pytest.approx(expected)


def chain(*triples: tuple[str, str, str]) -> tuple[KnowledgeGraph, EvidenceGraph]:
    graph = KnowledgeGraph.from_triples(triples)
    return graph, EvidenceGraph(graph.adjacency.edges)


def edge(graph: KnowledgeGraph, evidence: EvidenceGraph, start: str, end: str) -> int:
    at = (evidence.sender == graph.entities.id(start)) & (
        evidence.receiver == graph.entities.id(end)
    )
    return int(np.flatnonzero(at)[0])


def test_a_path_may_wait_between_its_facts_but_not_go_back_in_time() -> None:
    graph, evidence = chain(("a", "r", "b"), ("b", "r", "c"))
    first, second = edge(graph, evidence, "a", "b"), edge(graph, evidence, "b", "c")
    facts = np.ones(2)

    def search(first_hop: int, second_hop: int) -> list[tuple[int, ...]]:
        hops = np.full((3, 4), -1.0)
        hops[first_hop, first] = hops[second_hop, second] = 1.0
        found = find_paths(evidence, hops, facts, head=0, answer=2, count=5)
        return [path.edges for path in found]

    assert search(0, 2) == [(first, second)]
    assert search(1, 2) == [(first, second)]
    assert search(1, 1) == []
    assert search(2, 0) == []


def test_paths_are_weighed_by_the_mean_of_their_facts_and_those_against_are_left_out() -> None:
    graph, evidence = chain(("a", "r", "b"), ("b", "r", "c"), ("a", "s", "c"), ("a", "t", "c"))
    hops = np.ones((3, len(evidence.sender)))
    weights = np.zeros(evidence.num_facts)
    by_pair = {
        (start, end): evidence.fact_of_edge[edge(graph, evidence, start, end)]
        for start, end in (("a", "b"), ("b", "c"))
    }
    weights[by_pair["a", "b"]], weights[by_pair["b", "c"]] = 3.0, 1.0
    direct = [f for f in range(evidence.num_facts) if f not in by_pair.values()]
    weights[direct] = [0.5, -0.5]
    found = find_paths(evidence, hops, weights, head=0, answer=2, count=10)
    assert [(len(path.edges), path.weight) for path in found] == [(2, 2.0), (1, 0.5)]


def test_no_path_is_longer_than_allowed() -> None:
    _, evidence = chain(("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d"))
    hops, facts = np.ones((5, 6)), np.ones(3)
    assert len(find_paths(evidence, hops, facts, head=0, answer=3, count=9, max_length=3)) == 1
    assert find_paths(evidence, hops, facts, head=0, answer=3, count=9, max_length=2) == []


def test_there_is_no_path_from_an_entity_to_itself_nor_without_hops() -> None:
    _, evidence = chain(("a", "r", "b"), ("b", "r", "a"))
    facts = np.ones(2)
    assert find_paths(evidence, np.ones((3, 4)), facts, head=0, answer=0, count=9) == []
    assert find_paths(evidence, np.ones((0, 4)), facts, head=0, answer=1, count=9) == []
