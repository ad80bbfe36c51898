"""PairBatches: facts and as many unlinked pairs, for a loss that tells one from the other."""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.inverse import with_inverse_facts
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.query import QueryBatch
from knowformer.queries.unlinked import sample_unlinked


class PairBatches:
    """Shuffled batches, half facts and half unlinked pairs, each a query with one candidate.

    Both ends of an unlinked pair are random (NBFNet's negatives for link prediction), so scores
    become comparable between heads; candidates that share the fact's head would leave each head
    an offset of its own. Every fact is asked in both directions, as are the pairs.
    """

    def __init__(
        self,
        facts: Int[Tensor, "N 3"],
        known: KnownAnswers,
        *,
        num_entities: int,
        num_relations: int,
        batch_size: int,
    ) -> None:
        self._directed = with_inverse_facts(facts, num_relations)
        self._known = known
        self._num_entities = num_entities
        self._num_relations = num_relations
        self._num_facts = max(1, batch_size // 2)  # of a batch

    @property
    def num_queries(self) -> int:
        """Returns how many queries an epoch has."""
        return 2 * len(self._directed)

    def __len__(self) -> int:
        return -(-len(self._directed) // self._num_facts)

    def epoch(self, generator: torch.Generator, *, skip: int = 0) -> Iterator[QueryBatch]:
        """Yields the batches of an epoch without the first ``skip``."""
        facts = self._directed[torch.randperm(len(self._directed), generator=generator)]
        pairs = sample_unlinked(
            self._known,
            facts[:, 1],
            num_entities=self._num_entities,
            num_relations=self._num_relations,
            generator=generator,
        )
        for first in range(skip * self._num_facts, len(facts), self._num_facts):
            chosen = slice(first, first + self._num_facts)
            asked = torch.cat([facts[chosen], pairs[chosen]])
            heads, relations, tails = asked.unbind(1)
            yield QueryBatch(heads, relations, torch.arange(len(asked)), tails)
