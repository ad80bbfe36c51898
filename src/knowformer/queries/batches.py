"""Facts to batches of distinct queries, for evaluation."""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.inverse import num_with_inverses
from knowformer.queries.query import QueryBatch


def group_facts(
    facts: Int[Tensor, "F 3"], num_relations: int
) -> tuple[Int[Tensor, "Q 2"], Int[Tensor, " F"]]:
    """Groups facts by (head, relation).

    Returns:
        The distinct queries (head, relation), and for each fact the query that it answers.
    """
    width = num_with_inverses(num_relations)
    pairs: Tensor
    query: Tensor
    pairs, query = torch.unique(facts[:, 0] * width + facts[:, 1], return_inverse=True)
    return torch.stack([pairs // width, pairs % width], 1), query


def evaluation_batches(
    facts: Int[Tensor, "F 3"], num_relations: int, batch_size: int
) -> Iterator[tuple[QueryBatch, Int[Tensor, " f"]]]:
    """Yields every query once with all facts that it is asked for, and those facts' positions.

    Queries come by relation: those with the same one share work.
    """
    queries, query_of_fact = group_facts(facts, num_relations)
    order = torch.argsort(queries[:, 1], stable=True)
    queries, query_of_fact = queries[order], torch.argsort(order)[query_of_fact]
    by_query = torch.argsort(query_of_fact, stable=True)
    bounds = torch.searchsorted(query_of_fact[by_query], torch.arange(len(queries) + 1))
    for first in range(0, len(queries), batch_size):
        last = min(first + batch_size, len(queries))
        positions = by_query[bounds[first] : bounds[last]]
        batch = QueryBatch(
            heads=queries[first:last, 0],
            relations=queries[first:last, 1],
            rows=query_of_fact[positions] - first,
            tails=facts[positions, 2],
        )
        yield batch, positions
