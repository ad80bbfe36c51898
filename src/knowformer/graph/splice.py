"""Splice: a few elements leave a long array and a few come in, by copying the stretches between."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

FEW = 8  # up to so many steps are counted by a pass over the array each, more by a table


@dataclass(frozen=True)
class Splice:
    """What leaves an array of ``size`` elements and what comes, both in its old numbering."""

    size: int
    removed: Ids  # rising
    places: Ids  # rising; what comes stands before the element that has this number

    def apply(self, old: Array, new: Array) -> Array:
        """Returns the array after the change; ``new`` has an element for each place."""
        starts = np.sort(np.concatenate([[0], self.places, self.removed + 1]))
        stops = np.sort(np.concatenate([self.places, self.removed, [self.size]]))
        result = np.empty(self.size - len(self.removed) + len(self.places), dtype=old.dtype)
        moved = starts + self._steps(starts)
        for first, last, to in zip(starts.tolist(), stops.tolist(), moved.tolist(), strict=True):
            result[to : to + last - first] = old[first:last]
        result[self.new_numbers] = new
        return result

    @cached_property
    def new_numbers(self) -> Ids:
        """The numbers of what comes."""
        left = np.searchsorted(self.removed, self.places)
        return self.places - left + np.arange(len(self.places))

    def moved(self, numbers: Array) -> Array:
        """Returns the new numbers of elements, given their old ones; those that leave get any."""
        result = numbers.copy()
        if len(self.places) + len(self.removed) > FEW:
            steps = np.zeros(self.size + 1, dtype=np.int32)
            np.add.at(steps, self.places, 1)
            np.subtract.at(steps, self.removed + 1, 1)
            result += np.cumsum(steps, out=steps)[numbers]
            return result
        for place in self.places:
            result += numbers >= place
        for number in self.removed:
            result -= numbers > number
        return result

    def _steps(self, numbers: Ids) -> Ids:
        come = np.searchsorted(self.places, numbers, side="right")
        return come - np.searchsorted(self.removed, numbers)
