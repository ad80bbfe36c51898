"""Splits facts into train, valid and test: by a seed, with every name in train, or by time.

Edges of one kind, without direction, are split as the field splits them.

Every source without splits is split here: a file to train on, an import, another library's graph.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from knowformer.errors import ConfigError, DataError
from knowformer.graph.fact_index import Ids, Mask
from knowformer.seeding import generator
from knowformer.storage.triples_io import NamedTriple

DEFAULT_FRACTION = 0.1
MOST_HELD_OUT = 10_000
"""For validation and for the test each, unless a size is given: enough for two digits of MRR."""

TRAIN, VALID, TEST, LEFT_OUT = 0, 1, 2, 3
SPLIT_IDS = {"train": TRAIN, "valid": VALID, "test": TEST}
SplitIds = npt.NDArray[np.int8]


@dataclass(frozen=True)
class SplitSizes:
    """How many facts are held out: a fraction below 1, or a number; by default a tenth each."""

    valid: int | float | None = None
    test: int | float | None = None

    def counts(self, num_facts: int) -> tuple[int, int]:
        """Returns how many facts to hold out for validation and test.

        Raises:
            ConfigError: a size is neither a fraction nor a number of facts.
            DataError: nothing would be left to train on.
        """
        valid, test = (
            _count(name, wanted, num_facts)
            for name, wanted in (("valid", self.valid), ("test", self.test))
        )
        if self != SplitSizes() and valid + test >= num_facts:
            raise DataError(
                f"Expected fewer facts held out than there are, {num_facts:,}, got {valid:,} for "
                f"validation and {test:,} for the test. Lower `valid` and `test`, or give more "
                "facts."
            )
        return valid, test


def _count(name: str, wanted: int | float | None, num_facts: int) -> int:
    if wanted is None:
        return max(1, min(int(DEFAULT_FRACTION * num_facts), MOST_HELD_OUT))
    if not 0 < wanted < math.inf or (wanted >= 1 and wanted != int(wanted)):
        raise ConfigError(
            f"Expected a fraction below 1, or a number of facts, as `{name}`, got {wanted:g}."
        )
    return max(1, round(wanted * num_facts)) if wanted < 1 else int(wanted)


def split_by_seed(
    facts: Ids,
    *,
    seed: int,
    sizes: SplitSizes | None = None,
    groups: Ids | None = None,
    where: str = "",
) -> SplitIds:
    """Holds facts out so that every entity and relation still occurs in the facts that stay.

    In a random order, the first fact of each entity and of each relation stays. Of the others,
    every relation gives the same fraction (systematic sampling), so that none is missed.

    Args:
        facts: distinct facts.
        seed: the root seed.
        sizes: how many facts to hold out, where possible.
        groups: facts of one group stay together; by default each is its own.
        where: where the facts are from, for messages.

    Returns:
        The split of each fact.

    Raises:
        DataError: nothing can be held out for validation or for the test.
    """
    num_valid, num_test = (sizes or SplitSizes()).counts(len(facts))
    draw = generator(seed, "split")
    order = torch.randperm(len(facts), generator=draw).numpy()
    stays = _covering(facts, order)
    hint = "" if groups is None else " Without `no_leaks` more can be held out."
    if groups is None:
        groups = np.arange(len(facts))
    group_sizes = np.bincount(groups)
    # A group with a fact that stays, stays.
    free = np.flatnonzero((np.bincount(groups, weights=stays) == 0) & (group_sizes > 0))
    rank = np.empty(len(facts), dtype=np.int64)
    rank[order] = np.arange(len(facts))
    first = np.zeros(len(group_sizes), dtype=np.int64)
    first[groups[::-1]] = np.arange(len(facts))[::-1]
    free = free[np.lexsort((rank[first[free]], facts[first[free], 1]))]
    offset = torch.rand(1, generator=draw).item()
    fraction = (num_valid + num_test) / max(1, group_sizes[free].sum())
    chosen = free[_choose_evenly(len(free), fraction, offset)]
    is_valid = _choose_evenly(len(chosen), num_valid / (num_valid + num_test), offset)
    if is_valid.all() or not is_valid.any():
        raise DataError(
            "Expected enough facts to hold some out for validation and test without losing a name "
            f"in training, got {len(facts):,}{where}. Give more facts, or a folder with train.txt, "
            f"valid.txt and test.txt of your own.{hint}"
        )
    split_of_group = np.full(len(group_sizes), TRAIN, dtype=np.int8)
    split_of_group[chosen] = np.where(is_valid, VALID, TEST)
    return split_of_group[groups]


def _covering(facts: Ids, order: Ids) -> Mask:
    """Returns True for facts that are, in this order, the first of an entity or a relation."""
    stays = np.zeros(len(facts), dtype=bool)
    places = np.arange(len(facts))
    heads, relations, tails = facts[order].T
    for columns in ((heads, tails), (relations,)):
        first = np.full(max(int(column.max(initial=-1)) for column in columns) + 1, len(facts))
        for column in columns:
            np.minimum.at(first, column, places)
        stays[order[first[first < len(facts)]]] = True
    return stays


def _choose_evenly(number: int, fraction: float, offset: float) -> Mask:
    """Chooses a fraction of a list, evenly along it."""
    steps = np.floor(np.arange(number + 1) * min(fraction, 1.0) + offset)
    return np.diff(steps) > 0


@dataclass(frozen=True)
class TimeSplit:
    """A split by time, and where it cuts."""

    split_ids: SplitIds
    valid_from: float
    test_from: float


def split_by_time(
    facts: Ids, times: npt.NDArray[np.float64], *, sizes: SplitSizes | None = None
) -> TimeSplit:
    """Trains on the earliest facts and tests on the latest; facts of one time stay together.

    Later facts of a relation that has no earlier ones are left out: it could not be trained.

    Raises:
        DataError: the facts have fewer than three different times.
    """
    num_valid, num_test = (sizes or SplitSizes()).counts(len(facts))
    distinct, counts = np.unique(times, return_counts=True)
    if len(distinct) < 3:
        raise DataError(
            "Expected facts of three different times or more, to train on the earliest and test "
            f"on the latest, got {len(distinct)}. Leave `time` out to split by a seed."
        )
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])  # facts before each time
    last = int(np.argmin(np.abs(before[2:] - (len(facts) - num_test)))) + 2
    wanted = len(facts) - num_test - num_valid
    middle = int(np.argmin(np.abs(before[1:last] - wanted))) + 1
    valid_from, test_from = float(distinct[middle]), float(distinct[last])
    split_ids = np.full(len(facts), TRAIN, dtype=np.int8)
    split_ids[times >= valid_from] = VALID
    split_ids[times >= test_from] = TEST
    trained = np.unique(facts[split_ids == TRAIN, 1])
    split_ids[~np.isin(facts[:, 1], trained)] = LEFT_OUT
    return TimeSplit(split_ids, valid_from, test_from)


def split_edges(
    edges: Sequence[NamedTriple], *, seed: int, where: str = ""
) -> tuple[list[NamedTriple], list[NamedTriple], list[NamedTriple]]:
    """Splits edges as NBFNet does: 85/5/10, uniformly at random, whatever becomes of their nodes.

    An edge has no direction, a fact has one. It is drawn: the order in which a file names two nodes
    may follow something else, which a model would find in the graph and use.

    Raises:
        DataError: there are too few edges.
    """
    random = generator(seed, "split")
    order: list[int] = torch.randperm(len(edges), generator=random).tolist()
    swap: list[bool] = (torch.rand(len(edges), generator=random) < 0.5).tolist()
    facts = [
        (t, r, h) if swapped else (h, r, t) for (h, r, t), swapped in zip(edges, swap, strict=True)
    ]
    drawn = [facts[number] for number in order]
    num_train, num_valid = int(0.85 * len(drawn)), int(0.05 * len(drawn))
    if not num_valid:
        raise DataError(f"Expected at least 20 edges to split 85/5/10, got {len(drawn)}{where}.")
    after = num_train + num_valid
    return drawn[:num_train], drawn[num_train:after], drawn[after:]
