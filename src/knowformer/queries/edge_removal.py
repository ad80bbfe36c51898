"""Which facts a training query must not see: those that are its answer."""

from typing import Literal

from knowformer.graph.adjacency import Adjacency
from knowformer.kernels.interface import Edges
from knowformer.queries.query import QueryBatch

HiddenEdges = Literal["facts", "links"]


def visible_edges(adjacency: Adjacency, batch: QueryBatch, *, hide: HiddenEdges) -> Edges:
    """Returns the graph's edges without those that give the batch's answers away.

    Args:
        adjacency: the training graph.
        batch: the queries, whose own facts are hidden in both directions.
        hide: ``facts`` hides just those; ``links`` hides every edge between head and tail.
    """
    hidden = adjacency.without_links if hide == "links" else adjacency.without_facts
    return adjacency.edges.keep(hidden(batch.facts))
