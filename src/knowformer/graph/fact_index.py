"""FactIndex: a set of facts as sorted integers, found by binary search and grown by merging.

The adjacency, the known answers of queries and the audit all ask it. It is made of numpy arrays,
not tensors: numpy sorts integers several times faster, and an array made in torch's inference mode
is like any other. Tensors are made of its arrays without a copy.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from knowformer.errors import DataError
from knowformer.graph.inverse import inverse_facts, num_with_inverses
from knowformer.graph.splice import Splice

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

Column = Literal["head", "relation", "tail"]
Order = tuple[Column, Column, Column]
BY_RECEIVER: Order = ("tail", "head", "relation")
BY_QUERY: Order = ("head", "relation", "tail")
BY_PAIR: Order = ("head", "tail", "relation")

KEY_BITS = 63  # a signed integer of 64 bits stays positive
FACTS_AT_ONCE = 2**20  # whose inverses are made at once, for the sake of memory


@dataclass(frozen=True)
class KeyLayout:
    """How three ids are packed into one integer: bits for each column, the first one highest.

    Whole bits, not products of sizes: keys stay the same while entities are added, until their
    number passes a power of two.
    """

    order: Order
    entity_bits: int
    relation_bits: int

    @classmethod
    def fit(cls, order: Order, *, num_entities: int, num_relations: int) -> "KeyLayout":
        """Returns the layout for so many ids.

        Raises:
            DataError: head, relation and tail do not fit into one integer.
        """
        layout = cls(order, (num_entities - 1).bit_length(), (num_relations - 1).bit_length())
        if 2 * layout.entity_bits + layout.relation_bits > KEY_BITS:
            raise DataError(
                f"Expected a graph whose facts fit into {KEY_BITS} bits, two entities and a "
                f"relation each, got {num_entities:,} entities and {num_relations:,} relations. "
                "Take a part of the graph."
            )
        return layout

    @classmethod
    def around(cls, *facts: Ids) -> "KeyLayout":
        """Returns a layout for the ids in these facts; raises what ``fit`` raises."""
        return cls.fit(
            BY_QUERY,
            num_entities=max(int(some[:, [0, 2]].max(initial=0)) for some in facts) + 1,
            num_relations=max(int(some[:, 1].max(initial=0)) for some in facts) + 1,
        )

    def bits(self, column: Column) -> int:
        """Returns the bits of a column."""
        return self.relation_bits if column == "relation" else self.entity_bits

    def shift(self, column: Column) -> int:
        """Returns how far left a column stands."""
        return sum(self.bits(after) for after in self.order[self.order.index(column) + 1 :])

    def keys(self, facts: Ids) -> Ids:
        """Returns one integer per fact (head, relation, tail)."""
        head, relation, tail = facts.T
        keys = head << self.shift("head")
        keys |= relation << self.shift("relation")
        keys |= tail << self.shift("tail")
        return keys

    def column(self, keys: Ids, column: Column) -> Ids:
        """Returns the ids that stand in a column of these keys."""
        return keys >> self.shift(column) & ((1 << self.bits(column)) - 1)

    def facts(self, keys: Ids) -> Ids:
        """Returns (head, relation, tail) of these keys."""
        return np.stack([self.column(keys, name) for name in ("head", "relation", "tail")], 1)


class FactIndex:
    """Distinct facts, sorted by the columns of an order."""

    def __init__(self, layout: KeyLayout, keys: Ids) -> None:
        """Takes keys that are sorted and distinct; ``of`` makes them."""
        self.layout = layout
        self.keys = keys

    @classmethod
    def of(cls, facts: Ids, order: Order, *, num_entities: int, num_relations: int) -> "FactIndex":
        """Sorts facts (head, relation, tail).

        Args:
            facts: the facts, in any order; repeated ones count once.
            order: the columns to sort by.
            num_entities: how many entities there are.
            num_relations: how many relation ids there are, inverses included if facts have them.

        Raises:
            DataError: head, relation and tail do not fit into one integer.
        """
        layout = KeyLayout.fit(order, num_entities=num_entities, num_relations=num_relations)
        return cls(layout, sorted_distinct(layout.keys(facts)))

    @classmethod
    def with_inverses(
        cls, facts: Ids, order: Order, *, num_entities: int, num_relations: int
    ) -> "FactIndex":
        """Sorts facts and their inverses, which need not be made before.

        Args:
            facts: as of ``of``.
            order: the columns to sort by.
            num_entities: how many entities there are.
            num_relations: how many relations, as named.

        Raises:
            DataError: head, relation and tail do not fit into one integer.
        """
        width = num_with_inverses(num_relations)
        layout = KeyLayout.fit(order, num_entities=num_entities, num_relations=width)
        keys = np.empty((2, len(facts)), dtype=np.int64)
        for first in range(0, len(facts), FACTS_AT_ONCE):
            some = torch.from_numpy(facts[first : first + FACTS_AT_ONCE])
            at = slice(first, first + len(some))
            keys[0, at] = layout.keys(some.numpy())
            keys[1, at] = layout.keys(inverse_facts(some, num_relations).numpy())
        return cls(layout, sorted_distinct(keys.reshape(-1), in_place=True))

    def __len__(self) -> int:
        return len(self.keys)

    def column(self, column: Column) -> Ids:
        """Returns the ids in a column, in the order of the index."""
        return self.layout.column(self.keys, column)

    def find(self, facts: Ids) -> tuple[Ids, Mask]:
        """Returns where each fact stands, or would stand, and whether it is there."""
        wanted = self.layout.keys(facts)
        places = np.searchsorted(self.keys, wanted)
        is_there = np.zeros(len(wanted), dtype=bool)
        inside = places < len(self.keys)
        is_there[inside] = self.keys[places[inside]] == wanted[inside]
        return places, is_there

    def has_fact(self, facts: Ids) -> Mask:
        """Returns True where the fact is there."""
        return self.find(facts)[1]

    def runs(self, first: Ids, second: Ids) -> tuple[Ids, Ids]:
        """Returns start and stop of the facts that have these ids in the first two columns."""
        one, two, _ = self.layout.order
        keys = first << self.layout.shift(one) | second << self.layout.shift(two)
        after = keys + (1 << self.layout.shift(two))
        return np.searchsorted(self.keys, keys), np.searchsorted(self.keys, after)

    def members(self, first: Ids, second: Ids) -> tuple[Ids, Ids]:
        """Returns the ids in the third column of those facts, and which pair each belongs to."""
        pairs, places = spread(*self.runs(first, second))
        return pairs, self.layout.column(self.keys[places], self.layout.order[2])

    def offsets(self, number: int) -> Ids:
        """Returns where the facts of each id in the first column begin, and where the last end."""
        keys = np.arange(number + 1) << self.layout.shift(self.layout.order[0])
        return np.searchsorted(self.keys, keys)

    def run_starts(self) -> Ids:
        """Returns where the facts of each pair in the first two columns begin."""
        pairs = self.keys >> self.layout.bits(self.layout.order[2])
        return np.flatnonzero(np.diff(pairs, prepend=-1))

    def resized(self, *, num_entities: int, num_relations: int) -> "FactIndex":
        """Returns the same facts in a layout that has room for so many ids."""
        sizes = {"num_entities": num_entities, "num_relations": num_relations}
        layout = KeyLayout.fit(self.layout.order, **sizes)
        if layout == self.layout:
            return self
        # More bits for an id: larger keys in the same order.
        return FactIndex(layout, layout.keys(self.layout.facts(self.keys)))

    def splice(self, added: Ids, removed: Ids) -> tuple[Splice, Ids]:
        """Returns where facts come in and leave, and the keys of those that come, in order."""
        new = np.sort(self.layout.keys(added))
        gone = np.searchsorted(self.keys, np.sort(self.layout.keys(removed)))
        return Splice(len(self), removed=gone, places=np.searchsorted(self.keys, new)), new

    def changed(self, added: Ids, removed: Ids) -> "FactIndex":
        """Returns the index after a change: one pass of copying, no sort.

        Args:
            added: facts that are not there.
            removed: facts that are there.
        """
        splice, new = self.splice(added, removed)
        return FactIndex(self.layout, splice.apply(self.keys, new))


def spread(start: Ids, stop: Ids) -> tuple[Ids, Ids]:
    """Returns every place from each start to its stop, and which run each belongs to."""
    counts = stop - start
    runs = np.repeat(np.arange(len(counts)), counts)
    # Position inside its own run, added to the run's start.
    return runs, np.arange(len(runs)) + (start - np.cumsum(counts) + counts)[runs]


def pair_keys(heads: Ids, tails: Ids, num_entities: int) -> Ids:
    """Returns one integer per ordered pair of entities."""
    return heads * np.int64(num_entities) + tails


def sorted_distinct(keys: Ids, *, in_place: bool = False) -> Ids:
    """Returns distinct keys in order; several times faster than ``np.unique``, which hashes.

    Args:
        keys: any.
        in_place: sort them where they are, which saves a copy.
    """
    if in_place:
        keys.sort()
    else:
        keys = np.sort(keys)
    is_again = keys[1:] == keys[:-1]
    return keys[np.concatenate([[True], ~is_again])] if is_again.any() else keys


def stable_order(keys: Ids) -> Ids:
    """Returns what sorts keys that are not negative, equal ones as they stand.

    Where a key and a place fit into one integer, it sorts these, several times faster than
    ``np.argsort``.
    """
    bits = len(keys).bit_length()
    if int(keys.max(initial=0)).bit_length() + bits > KEY_BITS:
        return np.argsort(keys, kind="stable")
    packed = keys << bits
    packed |= np.arange(len(keys))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed
