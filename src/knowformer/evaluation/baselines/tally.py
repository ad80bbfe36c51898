"""Tally: numbers in groups; how many of a group are above another number, and how many equal."""

import numpy as np
from jaxtyping import Float, Int


class Tally:
    """Sorted once: a rank is then two binary searches, however large the group is."""

    def __init__(self, groups: Int[np.ndarray, " N"], values: Float[np.ndarray, " N"]) -> None:
        self._levels = np.unique(values)
        self._width = len(self._levels) + 1
        self._codes = np.sort(groups * self._width + np.searchsorted(self._levels, values))

    def count(
        self, groups: Int[np.ndarray, " Q"], values: Float[np.ndarray, " Q"]
    ) -> tuple[Int[np.ndarray, " Q"], Int[np.ndarray, " Q"]]:
        """Returns how many numbers of each group are above a value, and how many equal it."""
        first = groups * self._width + np.searchsorted(self._levels, values)
        after = groups * self._width + np.searchsorted(self._levels, values, side="right")
        places = np.searchsorted(self._codes, [first, after, (groups + 1) * self._width])
        return places[2] - places[1], places[1] - places[0]
