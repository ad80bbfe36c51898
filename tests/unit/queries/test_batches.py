from collections.abc import Callable

import pytest
import torch

from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.batches import evaluation_batches

GraphBuilder = Callable[..., KnowledgeGraph]


@pytest.mark.parametrize("batch_size", [1, 4, 1000])
def test_evaluation_asks_every_query_once_for_all_its_facts(
    random_graph: GraphBuilder, batch_size: int
) -> None:
    graph = random_graph(2, num_facts=50)
    directed = with_inverse_facts(graph.facts, len(graph.relations))
    seen: list[int] = []
    queries: list[tuple[int, int]] = []
    for batch, positions in evaluation_batches(directed, len(graph.relations), batch_size):
        assert len(batch) <= batch_size
        assert torch.equal(batch.facts, directed[positions])
        assert set(batch.rows.tolist()) == set(range(len(batch)))
        seen += positions.tolist()
        queries += zip(batch.heads.tolist(), batch.relations.tolist(), strict=True)
    assert sorted(seen) == list(range(len(directed)))
    assert len(queries) == len(set(queries))


def test_evaluation_keeps_a_fact_that_is_asked_for_twice() -> None:
    facts = torch.tensor([[0, 0, 1], [2, 1, 0], [0, 0, 1]])
    ((batch, positions),) = evaluation_batches(facts, 1, 16)
    assert sorted(positions.tolist()) == [0, 1, 2]
    assert len(batch) == 2


def test_nothing_to_evaluate_makes_no_batches() -> None:
    assert list(evaluation_batches(torch.empty(0, 3, dtype=torch.long), 2, 16)) == []
