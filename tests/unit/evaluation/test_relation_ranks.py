import pytest
import torch

from knowformer.calibration.calibrator import Calibrator
from knowformer.data.dataset import Split
from knowformer.evaluation.relation_ranks import rank_relations
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.scores import Scores

TRIPLES = [
    *((f"drug{n}", "treats", f"disease{n % 3}") for n in range(6)),
    *((f"drug{n}", "palliates", f"disease{(n + 1) % 3}") for n in range(6)),
    ("disease0", "resembles", "disease1"),
    ("disease1", "resembles", "disease2"),
]


class Flat:
    """A model that cannot tell relations apart."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._width = len(graph.entities)

    def score(self, heads: torch.Tensor, relations: torch.Tensor) -> Scores:
        del relations
        return Scores.of_all(torch.zeros(len(heads), self._width))


def test_kinds_tell_relations_apart_where_the_model_does_not() -> None:
    graph = KnowledgeGraph.from_triples(TRIPLES)
    held_out = graph.facts[:1].clone()
    drug, treats = graph.entities.id("drug0"), graph.relations.id("treats")
    held_out[0] = torch.tensor([drug, treats, graph.entities.id("disease2")])
    split = Split("valid", graph, held_out, torch.cat([graph.facts, held_out]))
    calibrator = Calibrator(None, "softmax", graph.relations)
    found = rank_relations(Flat(graph), split, calibrator, 5, seed=0)
    assert found["num_facts"] == 1
    assert found["model"]["mr"] == pytest.approx(2.0)  # three relations are tied
    assert found["kinds"]["mr"] <= 1.5  # it is not 'resembles'
    assert found["both"] == found["kinds"]
