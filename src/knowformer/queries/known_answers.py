"""(head, relation) -> known tails, for filtering; both directions of every fact."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.graph.inverse import num_with_inverses, with_inverse_facts


class KnownAnswers:
    """Known tails of every query, as sorted runs that are found by binary search."""

    def __init__(self, facts: Int[Tensor, "N 3"], *, num_entities: int, num_relations: int) -> None:
        self._width = num_with_inverses(num_relations)
        self._num_entities = num_entities
        heads, relations, tails = with_inverse_facts(facts, num_relations).unbind(1)
        keys: Tensor = torch.unique((heads * self._width + relations) * num_entities + tails)
        self._pairs = keys // num_entities
        self._tails = keys % num_entities

    def lookup(
        self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]
    ) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
        """Returns (row, tail) for every known answer of every query, rows in order."""
        pairs = heads * self._width + relations
        start = torch.searchsorted(self._pairs, pairs)
        counts = torch.searchsorted(self._pairs, pairs, right=True) - start
        rows = torch.repeat_interleave(torch.arange(len(pairs)), counts)
        # Position inside its own run, added to the run's start.
        within = torch.arange(len(rows)) - (torch.cumsum(counts, 0) - counts)[rows]
        return rows, self._tails[start[rows] + within]

    def mask(self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]) -> Bool[Tensor, "B V"]:
        """Returns True at every known answer of every query."""
        mask = torch.zeros(len(heads), self._num_entities, dtype=torch.bool)
        mask[self.lookup(heads, relations)] = True
        return mask
