from collections.abc import Callable

import pytest
import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.unlinked import sample_unlinked


def draw(graph: KnowledgeGraph, relations: list[int], seed: int = 0) -> list[list[int]]:
    sampled = sample_unlinked(
        KnownAnswers.of(graph),
        torch.tensor(relations, dtype=torch.long),
        num_entities=len(graph.entities),
        num_relations=len(graph.relations),
        generator=torch.Generator().manual_seed(seed),
    )
    return sampled.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_neither_direction_of_a_sampled_fact_is_known(
    random_graph: Callable[..., KnowledgeGraph], seed: int
) -> None:
    graph = random_graph(seed, num_entities=6, num_relations=2, num_facts=30)
    known = {tuple(fact) for fact in graph.facts.tolist()}
    drawn = draw(graph, [0, 1, 2, 3] * 25, seed)  # 2 and 3 are the inverses
    assert [relation for _, relation, _ in drawn] == [0, 1, 2, 3] * 25
    for head, relation, tail in drawn:
        assert head != tail
        assert (head, relation % 2, tail) not in known
        assert (tail, relation % 2, head) not in known
    assert drawn == draw(graph, [0, 1, 2, 3] * 25, seed)
    assert drawn != draw(graph, [0, 1, 2, 3] * 25, seed + 1)


def test_a_complete_graph_has_no_unlinked_pair() -> None:
    names = ["a", "b", "c"]
    complete = KnowledgeGraph.from_triples(
        [(head, "linked_to", tail) for head in names for tail in names if head < tail]
    )
    assert draw(complete, [0, 1, 0]) == []
    assert draw(complete, []) == []
