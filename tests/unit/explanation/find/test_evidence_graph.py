from collections.abc import Callable

import numpy as np
import torch

from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.traversal import UNREACHED


def test_a_fact_is_two_edges_that_are_removed_together(family: KnowledgeGraph) -> None:
    graph = EvidenceGraph(family.adjacency.edges)
    assert graph.num_facts == len(family.facts)
    assert np.bincount(graph.fact_of_edge).tolist() == [2] * graph.num_facts
    for number in range(graph.num_facts):
        ends = np.flatnonzero(graph.fact_of_edge == number)
        assert {*graph.sender[ends]} == {*graph.receiver[ends]}


def test_facts_are_told_in_ids_of_the_graph() -> None:
    edges = Adjacency(torch.tensor([[0, 1, 2], [2, 0, 1]]), num_entities=3, num_relations=2).edges
    part = EvidenceGraph(edges, torch.tensor([4, 6, 9]))
    assert part.facts([0]).tolist() == [[4, 1, 9]]
    assert part.facts([1, 0]).tolist() == [[9, 0, 6], [4, 1, 9]]
    assert part.facts([]).shape == (0, 3)
    for edge, number in enumerate(part.fact_of_edge.tolist()):
        ends = {4: 0, 6: 1, 9: 2}
        head, _, tail = part.facts([number])[0].tolist()
        assert {ends[head], ends[tail]} == {part.sender[edge], part.receiver[edge]}


def test_distances_are_counted_in_facts_both_ways(family: KnowledgeGraph) -> None:
    graph = EvidenceGraph(family.adjacency.edges)
    distance = graph.distances(family.entities.id("eve"))
    named = {name: int(distance[family.entities.id(name)]) for name in family.entities}
    assert named == {"eve": 0, "ann": 1, "bob": 2, "cid": 2, "dan": 2, "zoe": UNREACHED}


def test_walk_lengths_agree_with_walking(random_graph: Callable[..., KnowledgeGraph]) -> None:
    graph = EvidenceGraph(random_graph(3, num_facts=14).adjacency.edges)
    head, answer = 0, 5
    lengths = graph.walk_lengths(head, answer)
    to_head, to_answer = graph.distances(head), graph.distances(answer)
    for number in range(graph.num_facts):
        ends = np.flatnonzero(graph.fact_of_edge == number)
        walks = [to_head[graph.sender[e]] + 1 + to_answer[graph.receiver[e]] for e in ends]
        assert lengths[number] == min(walks)
