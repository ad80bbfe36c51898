import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views.coverage import coverage
from knowformer.views.settings import ViewSettings

CHAIN = KnowledgeGraph.from_triples([(f"e{n}", "next", f"e{n + 1}") for n in range(9)])


def test_coverage_counts_answers_of_both_sides() -> None:
    # Three entities are e0, e1 and e2 from the end of the chain, but e1, e2 and e3 from within.
    settings = ViewSettings(size=3, prior_weight=0.0)
    assert coverage(CHAIN, torch.tensor([[0, 0, 2]]), settings) == 0.5
    assert coverage(CHAIN, torch.tensor([[0, 0, 2], [3, 0, 8]]), settings) == 0.25


def test_a_view_of_everything_covers_every_answer() -> None:
    facts = torch.tensor([[0, 0, 9], [4, 0, 2]])
    assert coverage(CHAIN, facts, ViewSettings(size=10)) == 1.0
