"""TrainingBatches: training facts as shuffled batches of queries."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.fact_index import stable_order
from knowformer.graph.inverse import num_with_inverses, with_inverse_facts
from knowformer.queries.query import QueryBatch

Targets = Literal["all", "some", "one"]


class TrainingBatches:
    """The training queries of a graph, batched in an order that the generator alone decides.

    ``targets`` decides which answers of a query are its targets, and so which facts are hidden:
        all   one query per (head, relation) with all its answers
        some  one query per (head, relation) with a random subset; the other answers stay visible
        one   one query per fact (the paper's form); the other answers stay visible
    """

    def __init__(
        self, facts: Int[Tensor, "N 3"], *, num_relations: int, batch_size: int, targets: Targets
    ) -> None:
        self._targets: Targets = targets
        self._batch_size = batch_size
        directed = with_inverse_facts(facts, num_relations)
        if targets == "one":
            self._queries, self._tails = directed[:, :2], directed[:, 2]
            self._bounds = torch.arange(len(directed) + 1)
            return
        width = num_with_inverses(num_relations)
        keys = (directed[:, 0] * width + directed[:, 1]).numpy()
        order = stable_order(keys)
        self._tails = directed[:, 2][torch.from_numpy(order)]
        del directed  # of a large graph that takes gigabytes
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        self._queries = torch.from_numpy(np.stack(np.divmod(keys[first], width), 1))
        self._bounds = torch.from_numpy(np.append(first, len(keys)))

    @property
    def num_queries(self) -> int:
        """Returns how many queries an epoch has."""
        return len(self._queries)

    def __len__(self) -> int:
        return -(-self.num_queries // self._batch_size)

    def epoch(self, generator: torch.Generator, *, skip: int = 0) -> Iterator[QueryBatch]:
        """Yields the batches of an epoch without the first ``skip``."""
        order = torch.randperm(self.num_queries, generator=generator)
        chosen = self._choose_targets(generator)
        for first in range(skip * self._batch_size, self.num_queries, self._batch_size):
            yield self._batch(order[first : first + self._batch_size], chosen)

    def _choose_targets(self, generator: torch.Generator) -> Tensor:
        """Returns True at the facts that are targets in this epoch."""
        if self._targets != "some":
            return torch.ones(len(self._tails), dtype=torch.bool)
        draw = torch.rand(len(self._tails), generator=generator)
        # Each query draws the fraction of its targets; the lowest draw is always one.
        query = torch.repeat_interleave(torch.arange(self.num_queries), self._bounds.diff())
        fraction = torch.rand(self.num_queries, generator=generator)
        lowest = torch.full((self.num_queries,), 2.0).scatter_reduce(0, query, draw, "amin")
        return (draw < fraction[query]) | (draw == lowest[query])

    def _batch(self, queries: Int[Tensor, " B"], chosen: Tensor) -> QueryBatch:
        start = self._bounds[queries]
        counts = self._bounds[queries + 1] - start
        rows = torch.repeat_interleave(torch.arange(len(queries)), counts)
        positions = torch.arange(len(rows)) - (torch.cumsum(counts, 0) - counts)[rows] + start[rows]
        is_target = chosen[positions]
        return QueryBatch(
            heads=self._queries[queries, 0],
            relations=self._queries[queries, 1],
            rows=rows[is_target],
            tails=self._tails[positions[is_target]],
        )
