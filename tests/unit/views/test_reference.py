"""The reference by hand, and against PageRank as power iteration."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views.queries import Query
from knowformer.views.reference import Edge, is_hidden, pagerank
from knowformer.views.settings import MASS, PARTS, Rules, ViewSettings

FINE = Rules.of(ViewSettings(size=10, tolerance=1e-8))


def edges_of(graph: KnowledgeGraph) -> list[Edge]:
    columns = (graph.adjacency.sender, graph.adjacency.relation, graph.adjacency.receiver)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_one_round_by_hand() -> None:
    edges = [(0, 0, 1), (0, 1, 1), (0, 0, 2), (1, 2, 0), (1, 3, 0), (2, 2, 0)]
    coarse = Rules(size=3, mass=3 * PARTS, alpha=PARTS // 2, parts=PARTS, prior=0, tolerance=PARTS)
    # The head sends half of its mass in three equal shares; then nobody holds enough.
    assert pagerank(0, edges, coarse) == {0: 1.5 * PARTS, 1: PARTS / 2, 2: PARTS / 4}


def test_fine_enough_it_is_pagerank(random_graph: Callable[..., KnowledgeGraph]) -> None:
    graph = random_graph(2)
    edges, number = edges_of(graph), len(graph.entities)
    degree, expected = Counter(sender for sender, _, _ in edges), np.eye(number)[0]
    alpha = FINE.alpha / FINE.parts
    for _ in range(300):
        passed = np.zeros(number)
        for sender, _, receiver in edges:
            passed[receiver] += expected[sender] / degree[sender]
        expected = alpha * passed + (1 - alpha) * np.eye(number)[0]
    found = pagerank(0, edges, FINE)
    assert [found.get(entity, 0) / MASS for entity in range(number)] == pytest.approx(
        expected.tolist(), abs=1e-6
    )


def test_an_entity_without_edges_keeps_all() -> None:
    assert pagerank(3, [(0, 0, 1), (1, 1, 0)], FINE) == {3: MASS}


@pytest.mark.parametrize(
    ("edge", "facts", "links"),
    [
        ((0, 1, 2), True, True),
        ((2, 5, 0), True, True),
        ((0, 0, 2), False, True),
        ((2, 1, 0), False, True),
        ((0, 1, 3), False, False),
        ((0, 1, 0), True, True),
        ((0, 5, 0), True, True),
        ((0, 2, 0), False, True),
        ((2, 1, 3), False, False),
    ],
)
def test_hidden_edges(edge: Edge, facts: bool, links: bool) -> None:
    targets = np.array([0, 2])
    assert is_hidden(Query(0, 1, 5, False, targets), edge) == facts
    assert is_hidden(Query(0, 1, 5, True, targets), edge) == links
    listed = Query(0, 1, 5, False, targets, np.array([[2, 1, 3]]))
    assert is_hidden(listed, edge) == (edge == (2, 1, 3))
