"""Chunks of named rows to numbered, distinct facts; a million rows take seconds, little memory."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from knowformer.data.readers.rows import BadRows, Chunk, is_usable, why_unusable
from knowformer.data.readers.times import TimeColumn
from knowformer.graph.fact_index import Ids, KeyLayout


@dataclass(frozen=True)
class FactTable:
    """Distinct facts as ids, in order of first appearance; with times, the earliest first."""

    entities: list[str]
    relations: list[str]
    facts: Ids
    """(N, 3): head, relation, tail."""
    times: npt.NDArray[np.float64] | None
    num_rows: int
    """Good rows, repeated ones included."""

    @property
    def num_repeated(self) -> int:
        """Returns how many rows repeat the fact of an earlier row."""
        return self.num_rows - len(self.facts)


class FactTableBuilder:
    """Takes chunks of rows and numbers their names."""

    def __init__(self, bad_rows: BadRows, *, with_times: bool = False) -> None:
        self._bad_rows = bad_rows
        self._entities = _Numbering()
        self._relations = _Numbering()
        self._facts: list[Ids] = []
        self.time_column = TimeColumn() if with_times else None
        self._time_values: list[npt.NDArray[np.float64]] = []

    def add(self, chunk: Chunk) -> None:
        """Takes rows of head, relation and tail, and of a time if the table has times.

        Raises:
            DataError: a row is bad, and bad rows are not skipped.
        """
        heads, relations, tails = chunk.columns[:3]
        numberings = (self._entities, self._relations, self._entities)
        facts = np.stack(
            [
                numbering.ids(names)
                for numbering, names in zip(numberings, (heads, relations, tails), strict=True)
            ],
            axis=1,
        )
        good = np.ones(len(facts), dtype=bool)
        if self._entities.unusable or self._relations.unusable:
            good = self._check_names(chunk, facts)
        if self.time_column is not None:
            values = self.time_column.parse(chunk, good, self._bad_rows)
            self._time_values.append(values[good])
        self._facts.append(facts if good.all() else facts[good])

    def _check_names(self, chunk: Chunk, facts: Ids) -> npt.NDArray[np.bool_]:
        good = np.ones(len(facts), dtype=bool)
        roles = ("head", "relation", "tail")
        numberings = (self._entities, self._relations, self._entities)
        for column, (role, numbering) in enumerate(zip(roles, numberings, strict=True)):
            bad = good & np.isin(facts[:, column], list(numbering.unusable))
            for index in np.flatnonzero(bad).tolist():
                reason, hint = why_unusable(chunk.columns[column][index], role)
                self._bad_rows.add(chunk.place(index), reason, hint)
            good &= ~bad
        return good

    def finish(self) -> FactTable:
        """Returns the distinct facts; of a fact with several times, the earliest."""
        facts = np.concatenate([*self._facts, np.empty((0, 3), dtype=np.int64)])
        times = None
        num_rows = len(facts)
        if self.time_column is not None:
            times = np.concatenate([*self._time_values, np.empty(0)])
            order = np.argsort(times, kind="stable")
            facts, times = facts[order], times[order]
        first = first_occurrences(facts)
        return FactTable(
            list(self._entities.names),
            list(self._relations.names),
            facts[first],
            None if times is None else times[first],
            num_rows,
        )


class _Numbering:
    """Numbers names by first appearance, and remembers which are unusable."""

    def __init__(self) -> None:
        self.names: defaultdict[str, int] = defaultdict()
        self.names.default_factory = self.names.__len__  # an unknown name gets the next number
        self.unusable: set[int] = set()

    def ids(self, names: Sequence[str]) -> Ids:
        before = len(self.names)
        ids = np.fromiter(map(self.names.__getitem__, names), np.int64, len(names))
        # Each name is judged once, when it first appears.
        for name in islice(reversed(self.names), len(self.names) - before):
            if not is_usable(name):
                self.unusable.add(self.names[name])
        return ids


def first_occurrences(facts: Ids) -> Ids:
    """Returns the row of each distinct fact's first occurrence, in order."""
    keys = KeyLayout.around(facts).keys(facts)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.ones(len(keys), dtype=bool)
    is_first[1:] = keys[1:] != keys[:-1]
    return np.sort(order[is_first])
