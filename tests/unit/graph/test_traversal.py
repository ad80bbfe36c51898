"""Walks against networkx."""

from collections.abc import Callable

import networkx
from hypothesis import given
from hypothesis import strategies as st

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.traversal import UNREACHED, connected_components, distances


@given(seed=st.integers(0, 10**6), num_facts=st.integers(0, 30))
def test_components_and_distances_are_those_of_networkx(
    random_graph: Callable[..., KnowledgeGraph], seed: int, num_facts: int
) -> None:
    graph = random_graph(seed, num_entities=15, num_facts=num_facts)
    plain = networkx.Graph(graph.facts[:, [0, 2]].tolist())
    plain.add_nodes_from(range(15))
    heads, _, tails = graph.facts.numpy().T
    lowest = connected_components(heads, tails, 15)
    for component in networkx.connected_components(plain):
        assert set(lowest[list(component)].tolist()) == {min(component)}
    adjacency = graph.adjacency
    found = distances(3, adjacency.sender.numpy(), adjacency.receiver.numpy(), 15)
    expected = networkx.single_source_shortest_path_length(plain, 3)
    assert found.tolist() == [expected.get(entity, UNREACHED) for entity in range(15)]
