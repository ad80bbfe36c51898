"""The tails of every relation, the most frequent first."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.edge_orders import EdgeLists
from knowformer.graph.fact_index import KEY_BITS, stable_order
from knowformer.graph.inverse import inverse_of, num_with_inverses

Ids = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int32]


class Tails(NamedTuple):
    """Those of relation r are ``entities[offsets[r] : offsets[r + 1]]``; ties go by name."""

    offsets: Ids
    entities: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]  # facts with each of them
    num_facts: Ids  # of each relation

    @classmethod
    def of(cls, lists: EdgeLists, ranks: Ranks, num_relations: int) -> "Tails":
        """Counts and sorts.

        Args:
            lists: the edges of the graph, inverses included.
            ranks: of each entity, by name.
            num_relations: of the graph, as named.
        """
        # The facts of r with tail v are read backwards in one message of v.
        asked = inverse_of(torch.from_numpy(lists.message_relation), num_relations).numpy()
        counts, entities = np.diff(lists.message_offsets), lists.message_sender()
        number = num_with_inverses(num_relations)
        order = _order(asked, counts, ranks[entities])
        return cls(
            np.searchsorted(asked[order], np.arange(number + 1)),
            entities[order],
            counts[order],
            np.bincount(asked, weights=counts, minlength=number).astype(np.int64),
        )


def _order(asked: Ranks, counts: Ranks, ranks: Ranks) -> Ids:
    """Returns messages by what they answer, the largest first; ties go by rank."""
    keys = asked.astype(np.int64)
    for column in (counts.max(initial=0) - counts, ranks):
        bits = int(column.max(initial=0)).bit_length()
        if int(keys.max(initial=0)).bit_length() + bits > KEY_BITS:
            return np.lexsort((ranks, -counts, asked))
        keys <<= bits
        keys |= column
    return stable_order(keys)


def name_ranks(entity_keys: npt.NDArray[np.uint64]) -> Ranks:
    """Returns the rank of each entity by its key, which follows its name: ties go by it."""
    ranks = np.empty(len(entity_keys), dtype=np.int32)
    ranks[np.argsort(entity_keys, kind="stable")] = np.arange(len(ranks), dtype=np.int32)
    return ranks


def tails_of(adjacency: Adjacency, ranks: Ranks) -> Tails:
    """Returns the tails of every relation of a graph, sorted once and kept with its edges."""
    if Tails not in adjacency.memo:
        adjacency.memo[Tails] = Tails.of(adjacency.lists, ranks, adjacency.num_relations)
    return adjacency.memo[Tails]
