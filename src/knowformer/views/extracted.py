"""What is found of queries: scored entities, those that are chosen, views side by side."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from knowformer.kernels.interface import Edges

Entities = npt.NDArray[np.int32]
Scores = npt.NDArray[np.int64]

FOREMOST = 2**62  # the head's score: it is always chosen


class Scored(NamedTuple):
    """Entities and their scores."""

    entities: Entities
    scores: Scores

    @staticmethod
    def nothing() -> "Scored":
        """No entity."""
        return Scored(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64))

    def choose(self, size: int, ranks: Entities, *, outside: bool) -> tuple[Entities, "Scored"]:
        """Returns the best entities by rising id, and the others, the best first.

        One without a score is neither. Ties go by name.

        Args:
            size: how many to choose at most.
            ranks: of every entity of the graph, by name.
            outside: whether the others are wanted; else none are returned.
        """
        entities, scores, least = self.entities, self.scores, self._least(size)
        is_chosen = scores > least
        equal = np.flatnonzero(scores == least)
        room = size - np.count_nonzero(is_chosen)
        is_chosen[equal[np.argsort(ranks[entities[equal]])[:room]]] = True
        others = ~is_chosen & (scores > 0) if outside else np.zeros(0, dtype=np.intp)
        rest = Scored(entities[others], scores[others])
        order = np.lexsort((ranks[rest.entities], -rest.scores))
        return np.sort(entities[is_chosen]), Scored(rest.entities[order], rest.scores[order])

    def in_doubt(self, size: int, missing: int) -> npt.NDArray[np.bool_]:
        """Returns True where it is open whether an entity is chosen: near the last one that is.

        For the others their scores as they are do: with what they lack it would not be otherwise.

        Args:
            size: how many are chosen.
            missing: what the scores may lack at most.
        """
        least = self._least(size)
        return (self.scores >= least - missing) & (self.scores <= least + missing)

    def _least(self, size: int) -> int:
        """The score of the last one that is chosen, or 1 if all are that have one."""
        if len(self.scores) <= size:
            return 1
        return max(1, int(np.partition(self.scores, -size)[-size]))


class Extracted(NamedTuple):
    """Views side by side."""

    members: list[Entities]  # of each view, rising
    edges: Edges  # of all of them
    outside: list[Scored]
