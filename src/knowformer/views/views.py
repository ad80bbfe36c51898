"""Views: what an extractor returns."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from knowformer.kernels.interface import QueryView


@dataclass(frozen=True)
class Outside:
    """Entities with a score that are not in their query's view: the best first, ties by name.

    Those of query b are ``offsets[b] .. offsets[b + 1]``. Entities that are neither here nor in the
    view have score 0.
    """

    offsets: Int64[Tensor, " bounds"]
    entities: Int64[Tensor, " M"]
    scores: Int64[Tensor, " M"]  # PageRank + weighted prior, in units of 1 / MASS

    @staticmethod
    def join(parts: Sequence["Outside"]) -> "Outside":
        """Returns what is outside of the views of several batches, as of one."""
        lengths = torch.cat([part.offsets.diff() for part in parts])
        return Outside(
            torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]),
            torch.cat([part.entities for part in parts]),
            torch.cat([part.scores for part in parts]),
        )

    def of_query(self, query: int) -> tuple[Int64[Tensor, " m"], Int64[Tensor, " m"]]:
        """Returns the entities outside of a query's view, in order, and their scores."""
        at = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        return self.entities[at], self.scores[at]


@dataclass(frozen=True)
class Views:
    """What B queries see, and the entity of each of their N rows, rising within a query."""

    view: QueryView
    entities: Int64[Tensor, " N"]
    outside: Outside | None

    def contains(self, rows: Int[Tensor, " F"], entities: Int[Tensor, " F"]) -> Bool[Tensor, " F"]:
        """Returns True where query ``rows[f]`` sees ``entities[f]``."""
        return self.find(rows, entities) >= 0

    def find(self, rows: Int[Tensor, " F"], entities: Int[Tensor, " F"]) -> Int64[Tensor, " F"]:
        """Returns the row of ``entities[f]`` among those of query ``rows[f]``; -1: not seen.

        Rows are counted through all queries.
        """
        queries = torch.arange(len(self.view)).repeat_interleave(self.view.offsets.diff())
        span = 1 + int(torch.cat([self.entities, entities, torch.tensor([0])]).max())
        # One rising list: all entities of a query are below those of the next.
        seen, wanted = queries * span + self.entities, rows * span + entities
        places = torch.searchsorted(seen, wanted)
        is_there = torch.cat([seen, torch.tensor([-1])])[places] == wanted
        return torch.where(is_there, places, -1)
