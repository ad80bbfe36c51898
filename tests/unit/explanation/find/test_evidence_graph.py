from collections.abc import Callable

import numpy as np
import torch

from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.traversal import UNREACHED


def edge_set(graph: EvidenceGraph, facts: list[int]) -> set[tuple[int, int, int]]:
    kept = graph.without(facts)
    receiver = torch.repeat_interleave(kept.offsets.diff())
    return set(zip(kept.sender.tolist(), kept.relation.tolist(), receiver.tolist(), strict=True))


def test_a_fact_is_two_edges_that_are_removed_together(family: KnowledgeGraph) -> None:
    graph = EvidenceGraph(family.adjacency)
    assert graph.num_facts == len(family.facts)
    assert np.bincount(graph.fact_of_edge).tolist() == [2] * graph.num_facts
    for number in range(graph.num_facts):
        ends = np.flatnonzero(graph.fact_of_edge == number)
        assert {*graph.sender[ends]} == {*graph.receiver[ends]}


def test_removing_a_fact_is_building_the_graph_without_it(family: KnowledgeGraph) -> None:
    graph = EvidenceGraph(family.adjacency)
    head, relation, tail = family.facts[3].tolist()
    at = (graph.sender == head) & (graph.relation == relation) & (graph.receiver == tail)
    number = int(graph.fact_of_edge[at][0])
    rest = torch.cat([family.facts[:3], family.facts[4:]])
    rebuilt = Adjacency(
        rest, num_entities=len(family.entities), num_relations=len(family.relations)
    )
    assert edge_set(graph, [number]) == edge_set(EvidenceGraph(rebuilt), [])
    others = [other for other in range(graph.num_facts) if other != number]
    assert len(graph.only([number]).message) == 2
    assert len(graph.without(others).message) == 2


def test_a_hidden_fact_is_no_evidence(family: KnowledgeGraph) -> None:
    hidden = EvidenceGraph(family.adjacency, hidden=family.facts[:1])
    assert hidden.hides_something
    assert hidden.num_facts == len(family.facts) - 1
    assert not EvidenceGraph(family.adjacency, hidden=torch.tensor([[0, 0, 0]])).hides_something


def test_distances_are_counted_in_facts_both_ways(family: KnowledgeGraph) -> None:
    graph = EvidenceGraph(family.adjacency)
    distance = graph.distances(family.entities.id("eve"))
    named = {name: int(distance[family.entities.id(name)]) for name in family.entities}
    assert named == {"eve": 0, "ann": 1, "bob": 2, "cid": 2, "dan": 2, "zoe": UNREACHED}


def test_walk_lengths_agree_with_walking(random_graph: Callable[..., KnowledgeGraph]) -> None:
    graph = EvidenceGraph(random_graph(3, num_facts=14).adjacency)
    head, answer = 0, 5
    lengths = graph.walk_lengths(head, answer)
    to_head, to_answer = graph.distances(head), graph.distances(answer)
    for number in range(graph.num_facts):
        ends = np.flatnonzero(graph.fact_of_edge == number)
        walks = [to_head[graph.sender[e]] + 1 + to_answer[graph.receiver[e]] for e in ends]
        assert lengths[number] == min(walks)
