"""QueryBatch: questions (head, relation, ?), immutable.

A question for a head, (?, r, t), is the query (t, inverse of r): see ``graph.inverse``.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True)
class QueryBatch:
    """B queries with F answers: fact f answers query ``rows[f]`` with entity ``tails[f]``."""

    heads: Int[Tensor, " B"]
    relations: Int[Tensor, " B"]
    rows: Int[Tensor, " F"]
    tails: Int[Tensor, " F"]

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def facts(self) -> Int[Tensor, "F 3"]:
        """The batch's own facts (head, relation, tail), relations as asked."""
        return torch.stack([self.heads[self.rows], self.relations[self.rows], self.tails], 1)

    def targets(self, num_entities: int) -> Bool[Tensor, "B V"]:
        """Returns True at each answer of each query."""
        mask = torch.zeros(len(self), num_entities, dtype=torch.bool)
        mask[self.rows, self.tails] = True
        return mask

    def slice(self, first: int, last: int) -> "QueryBatch":
        """Returns queries ``first`` to ``last`` with their answers."""
        inside = (self.rows >= first) & (self.rows < last)
        return QueryBatch(
            heads=self.heads[first:last],
            relations=self.relations[first:last],
            rows=self.rows[inside] - first,
            tails=self.tails[inside],
        )

    def keep(self, queries: Bool[Tensor, " B"], facts: Bool[Tensor, " F"]) -> "QueryBatch":
        """Returns some of the queries with some of their answers; no other query keeps one."""
        place = torch.cumsum(queries, 0) - 1
        return QueryBatch(
            self.heads[queries], self.relations[queries], place[self.rows[facts]], self.tails[facts]
        )

    def by_relation(self) -> "QueryBatch":
        """Returns the same queries with equal relations side by side: they share work."""
        order = torch.argsort(self.relations, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        return QueryBatch(self.heads[order], self.relations[order], place[self.rows], self.tails)

    def describe(self) -> str:
        """Names the batch in an error message."""
        shown: list[list[int]] = torch.stack([self.heads, self.relations], 1)[:3].tolist()
        more = f" and {len(self) - 3} more" if len(self) > 3 else ""
        return f"a batch of {len(self)} queries (head, relation ids): {shown}{more}"
