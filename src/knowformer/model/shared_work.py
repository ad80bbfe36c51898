"""Work that queries have in common, done once: exact, not approximate.

The first layer's query stream sees a query's relation and its subgraph, nothing else of it. And its
value stream is the same for all heads where the head is out of reach.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.kernels.interface import NO_HEAD, QueryView


@dataclass(frozen=True)
class DistinctQueries:
    """Queries that differ in relation or subgraph, whatever their heads, and who they stand for."""

    view: QueryView
    relations: Int[Tensor, " P"]
    of_query: Int[Tensor, " B"]  # which of them each query is

    @staticmethod
    def among(view: QueryView, relations: Int[Tensor, " B"]) -> "DistinctQueries":
        """Returns those of a batch, by subgraph and then by relation."""
        width = int(relations.max()) + 1 if len(relations) else 1
        keys: Tensor
        of_query: Tensor
        keys, of_query = torch.unique(view.starts * width + relations, return_inverse=True)
        lengths = torch.zeros_like(keys)
        lengths[of_query] = view.offsets.diff()
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        heads = torch.full_like(keys, NO_HEAD)
        distinct = QueryView(view.edges, offsets, keys // width, heads)
        return DistinctQueries(distinct, keys % width, of_query)

    def segments(self, queries: Int[Tensor, " b"]) -> list[slice]:
        """Returns for each of these queries the rows of the one that stands for it."""
        bounds: list[int] = self.view.offsets.tolist()
        return [slice(bounds[at], bounds[at + 1]) for at in self.of_query[queries].tolist()]


def take_segments(rows: Float[Tensor, "N D"], segments: list[slice]) -> Float[Tensor, "M D"]:
    """Returns segments of rows, end to end."""
    return torch.cat([rows[segment] for segment in segments])


def add_segments(
    sums: Float[Tensor, "N D"], segments: list[slice], rows: Float[Tensor, "M D"]
) -> None:
    """Adds rows to the segments that ``take_segments`` took them from, one after the other."""
    first = 0
    for segment in segments:
        count = segment.stop - segment.start
        sums[segment] += rows[first : first + count]
        first += count
