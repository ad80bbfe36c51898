"""FactIndex: which pairs of entities facts link, and by which relation, by binary search."""

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class FactIndex:
    """Facts as sorted integers."""

    def __init__(self, facts: Ids, *, num_entities: int, num_relations: int) -> None:
        self._num_entities = num_entities
        self._num_relations = num_relations
        heads, relations, tails = facts.T
        keys = pair_keys(heads, tails, num_entities)
        self._pairs = sorted_distinct(keys)
        # Pairs are numbered first: heads x relations x tails need not fit into 64 bits.
        numbers = np.searchsorted(self._pairs, keys)
        self._facts = sorted_distinct(numbers * num_relations + relations)

    def has_pair(self, heads: Ids, tails: Ids) -> Mask:
        """Returns True where some fact links the head to the tail, in this direction."""
        return self._find(self._pairs, pair_keys(heads, tails, self._num_entities))[1]

    def has_fact(self, heads: Ids, relations: Ids, tails: Ids) -> Mask:
        """Returns True where the fact is there."""
        pairs, found = self._find(self._pairs, pair_keys(heads, tails, self._num_entities))
        return found & self._find(self._facts, pairs * self._num_relations + relations)[1]

    @staticmethod
    def _find(keys: Ids, wanted: Ids) -> tuple[Ids, Mask]:
        if not len(keys):
            return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return places, keys[places] == wanted


def pair_keys(heads: Ids, tails: Ids, num_entities: int) -> Ids:
    """Returns one integer per ordered pair of entities."""
    return heads * np.int64(num_entities) + tails


def sorted_distinct(keys: Ids) -> Ids:
    """Returns distinct keys in order; several times faster than ``np.unique``, which hashes."""
    keys = np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
