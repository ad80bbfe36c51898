import pytest
import torch

from knowformer.data.dataset import Split
from knowformer.evaluation.link_prediction import auroc, average_precision, unlinked_pairs
from knowformer.graph.knowledge_graph import KnowledgeGraph

POSITIVES = torch.tensor([3.0, 1.0, 2.0])
NEGATIVES = torch.tensor([0.0, 2.0])


def test_auroc_counts_pairs_and_half_of_ties() -> None:
    # 3 beats both, 1 beats one, 2 beats one and ties one.
    assert auroc(POSITIVES, NEGATIVES) == pytest.approx((2 + 1 + 1.5) / 6)
    assert auroc(torch.tensor([1.0]), torch.tensor([0.0])) == 1.0
    assert auroc(torch.zeros(4), torch.zeros(3)) == 0.5


def test_average_precision_is_the_mean_precision_at_each_positive() -> None:
    # At 3: 1 of 1. At 2: 2 of 3. At 1: 3 of 4.
    assert average_precision(POSITIVES, NEGATIVES) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert average_precision(torch.zeros(2), torch.zeros(6)) == pytest.approx(0.25)


def test_sampled_pairs_are_linked_in_no_direction_and_follow_the_seed() -> None:
    triples = [(f"n{i}", "linked_to", f"n{j}") for i in range(6) for j in range(i + 1, 6, 2)]
    graph = KnowledgeGraph.from_triples(triples)
    split = Split("test", graph, graph.facts, graph.facts)
    drawn = unlinked_pairs(split, seed=0)
    linked = {frozenset((h, t)) for h, _, t in graph.facts.tolist()}
    assert len(drawn) == len(graph.facts)
    assert all(h != t and frozenset((h, t)) not in linked for h, _, t in drawn.tolist())
    assert torch.equal(drawn, unlinked_pairs(split, seed=0))
    assert not torch.equal(drawn, unlinked_pairs(split, seed=1))
