"""What is found of queries: scored entities, those that are chosen, views side by side."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from knowformer.kernels.interface import Edges

Entities = npt.NDArray[np.int32]
Scores = npt.NDArray[np.int64]


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

        The first entity, which is the head, is always chosen, and one without a score never. Ties
        go by name.

        Args:
            size: how many to choose at most.
            ranks: of every entity of the graph, by name.
            outside: whether the others are wanted; else none are returned.
        """
        entities, scores = self.entities, self.scores.copy()
        scores[0] = np.iinfo(np.int64).max
        if len(scores) <= size:
            is_chosen = scores > 0
        else:
            least = np.partition(scores, -size)[-size]
            is_chosen = scores > max(least, 0)
            room = size - np.count_nonzero(is_chosen)
            if least > 0:
                equal = np.flatnonzero(scores == least)
                is_chosen[equal[np.argsort(ranks[entities[equal]])[:room]]] = True
        others = ~is_chosen & (scores > 0) if outside else np.zeros(0, dtype=np.intp)
        rest = Scored(entities[others], scores[others])
        order = np.lexsort((ranks[rest.entities], -rest.scores))
        return np.sort(entities[is_chosen]), Scored(rest.entities[order], rest.scores[order])


class Extracted(NamedTuple):
    """Views side by side."""

    members: list[Entities]  # of each view, rising
    edges: Edges  # of all of them
    outside: list[Scored]
