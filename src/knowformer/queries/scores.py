"""Scores: what each query's candidates score, ragged like the view that they come from."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.views.views import Outside


@dataclass(frozen=True)
class Scores:
    """Scores of B queries: those of query b are ``values[offsets[b] : offsets[b + 1]]``.

    A query's candidates are the entities that it sees. Losses, ranks and answers work on a table
    with a row per query and a column per candidate; where every query sees the whole graph, a
    column is an entity and nothing is copied.
    """

    values: Float[Tensor, " N"]
    offsets: Int[Tensor, " bounds"]  # one more than queries
    num_entities: int
    entities: Int[Tensor, " N"] | None = None
    """Which entity each score belongs to, rising within a query; None: every query sees all."""
    outside: Outside | None = None
    """The order of what queries do not see; None: all tied."""

    @staticmethod
    def of_all(table: Float[Tensor, "B V"]) -> "Scores":
        """Returns the scores of queries that see every entity."""
        offsets = torch.arange(len(table) + 1) * table.shape[1]
        return Scores(table.reshape(-1), offsets, table.shape[1])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def table(self) -> Float[Tensor, "B W"]:
        """A row per query, a column per candidate; -inf where a query has fewer than others."""
        if self.entities is None:
            return self.values.view(len(self), self.num_entities)
        table = self.values.new_full((len(self), self._num_columns), -torch.inf)
        table[self._row, self._column] = self.values
        return table

    @cached_property
    def is_candidate(self) -> Bool[Tensor, "B W"]:
        """True where the table has a score."""
        if self.entities is None:
            return torch.ones(self.table.shape, dtype=torch.bool)
        return torch.arange(self._num_columns) < self.offsets.diff()[:, None]

    def columns(self, queries: Int[Tensor, " F"], entities: Int[Tensor, " F"]) -> Int[Tensor, " F"]:
        """Returns in which column each entity stands for its query; -1 if the query sees it not."""
        if self.entities is None:
            return entities
        keys = self._row * self.num_entities + self.entities
        wanted = queries * self.num_entities + entities
        at = torch.searchsorted(keys, wanted).clamp(max=max(len(keys) - 1, 0))
        is_seen = keys[at] == wanted if len(keys) else torch.zeros_like(wanted, dtype=torch.bool)
        return torch.where(is_seen, at - self.offsets[queries], -1)

    def at(self, queries: Int[Tensor, " F"], entities: Int[Tensor, " F"]) -> Float[Tensor, " F"]:
        """Returns the score of each entity for its query.

        One that the query does not see comes after those that it sees: it gets the lowest score.
        """
        columns = self.columns(queries, entities)
        lowest = self.table.masked_fill(~self.is_candidate, torch.inf).amin(1)
        scores = self.table[queries, columns.clamp(min=0)]
        return torch.where(columns < 0, lowest[queries], scores)

    def mask(self, queries: Int[Tensor, " F"], entities: Int[Tensor, " F"]) -> Bool[Tensor, "B W"]:
        """Returns True in the table at these pairs of a query and an entity that it sees."""
        mask = torch.zeros(self.table.shape, dtype=torch.bool)
        columns = self.columns(queries, entities)
        is_seen = columns >= 0
        mask[queries[is_seen], columns[is_seen]] = True
        return mask

    def entities_at(self, columns: Int[Tensor, "B K"]) -> Int[Tensor, "B K"]:
        """Returns which entity stands in each of some columns, row by row; -1 where none does."""
        if self.entities is None:
            return columns
        at = self.offsets[:-1, None] + columns
        is_candidate = columns < self.offsets.diff()[:, None]
        return torch.where(is_candidate, self.entities[at.clamp(max=len(self.entities) - 1)], -1)

    def entities_of(self, query: int) -> Int[Tensor, " n"]:
        """Returns the entities that a query sees, rising."""
        if self.entities is None:
            return torch.arange(self.num_entities)
        return self.entities[int(self.offsets[query]) : int(self.offsets[query + 1])]

    def dense(self) -> Float[Tensor, "B V"]:
        """Returns a column for every entity of the graph; -inf for those that a query sees not."""
        if self.entities is None:
            return self.table
        dense = self.values.new_full((len(self), self.num_entities), -torch.inf)
        dense[self._row, self.entities] = self.values
        return dense

    @cached_property
    def _num_columns(self) -> int:
        return int(self.offsets.diff().max()) if len(self) else 0

    @cached_property
    def _row(self) -> Int[Tensor, " N"]:
        return torch.repeat_interleave(torch.arange(len(self)), self.offsets.diff())

    @cached_property
    def _column(self) -> Int[Tensor, " N"]:
        return torch.arange(len(self.values)) - self.offsets[self._row]
