"""Coverage: how many answers lie inside the views of their queries."""

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views.extractor import extractor_of
from knowformer.views.settings import ViewSettings

BATCH_SIZE = 64  # views at a time, for the sake of memory


def coverage(graph: KnowledgeGraph, facts: Int[Tensor, "N 3"], settings: ViewSettings) -> float:
    """Returns the fraction of facts, asked both ways, whose answer is inside the query's view.

    Args:
        graph: what queries see; it does not have the facts.
        facts: the facts to ask for; at least one.
        settings: which views.
    """
    extractor = extractor_of(graph.adjacency, graph.entity_keys, settings)
    asked = with_inverse_facts(facts, len(graph.relations))
    inside = 0
    for batch in asked.split(BATCH_SIZE):
        views = extractor.extract(batch[:, 0], batch[:, 1])
        inside += int(views.contains(torch.arange(len(batch)), batch[:, 2]).sum())
    return inside / len(asked)
