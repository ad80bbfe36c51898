"""Which edges a training batch does not see: its own answers, and some others at random."""

from typing import Literal

import torch

from knowformer.graph.adjacency import Adjacency
from knowformer.kernels.interface import Edges
from knowformer.queries.query import QueryBatch

HiddenEdges = Literal["facts", "links"]


def visible_edges(
    adjacency: Adjacency,
    batch: QueryBatch,
    *,
    hide: HiddenEdges,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> Edges:
    """Returns the graph's edges without those that give the batch's answers away.

    Args:
        adjacency: the training graph.
        batch: the queries, whose own facts are hidden in both directions.
        hide: ``facts`` hides just those; ``links`` hides every edge between head and tail.
        dropout: share of the others that is left out at random, each direction for itself.
        generator: draws them.
    """
    hidden = adjacency.without_links if hide == "links" else adjacency.without_facts
    kept = hidden(batch.facts)
    if dropout:
        kept &= torch.rand(len(kept), generator=generator) >= dropout
    return adjacency.edges.keep(kept)
