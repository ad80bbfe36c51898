"""The tails of every relation, the most frequent first."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from knowformer.graph.inverse import inverse_of
from knowformer.kernels.interface import Edges

Ids = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int32]


class Tails(NamedTuple):
    """Those of relation r are ``entities[offsets[r] : offsets[r + 1]]``; ties go by name."""

    offsets: Ids
    entities: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]  # facts with each of them
    num_facts: Ids  # of each relation

    @classmethod
    def of(cls, edges: Edges, ranks: Ranks) -> "Tails":
        """Counts and sorts.

        Args:
            edges: of the graph, inverses included.
            ranks: of each entity, by name.
        """
        # The facts of r with tail v are read backwards in one message of v.
        asked = inverse_of(edges.message_relation, edges.num_relations // 2).numpy()
        counts = np.diff(edges.message_offsets.numpy())
        entities = edges.message_sender.numpy()
        order = np.lexsort((ranks[entities], -counts, asked))
        number = edges.num_relations
        return cls(
            np.searchsorted(asked[order], np.arange(number + 1)),
            entities[order],
            counts[order],
            np.bincount(edges.relation.numpy(), minlength=number),
        )
