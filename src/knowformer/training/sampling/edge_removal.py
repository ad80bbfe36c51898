"""Edge removal: a training batch sees neither its target facts nor a random sample of edges."""

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
    """Returns the graph's edges without those that would leak the batch's answers.

    Args:
        adjacency: the training graph.
        batch: the queries, whose target facts are hidden in both directions.
        hide: ``facts`` hides only those; ``links`` hides every edge between their heads and tails.
        dropout: fraction of the other edges to hide, each direction drawn separately.
        generator: draws the edges to drop.
    """
    hidden = adjacency.without_links if hide == "links" else adjacency.without_facts
    kept = hidden(batch.facts)
    if dropout:
        kept &= torch.rand(len(kept), generator=generator) >= dropout
    return adjacency.edges.keep(kept)
