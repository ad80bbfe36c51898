"""Popularity: how often an entity is the tail of a relation, whatever the head.

As a rule of no step: the share of the relation's heads that have it as their tail.
"""

import numpy as np
import torch
from jaxtyping import Float, Int

from knowformer.evaluation.baselines.evidence import confidence, evidence
from knowformer.evaluation.baselines.tally import Tally
from knowformer.graph.fact_index import stable_order
from knowformer.graph.inverse import inverse_of, num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph


class Popularity:
    """The evidence that an entity is a relation's tail; inverse relations are included."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Counts the facts of a graph."""
        self.num_entities = len(graph.entities)
        width, num_relations = num_with_inverses(len(graph.relations)), len(graph.relations)
        # The facts of r with tail v are read backwards: those of the inverse with head v.
        index = graph.adjacency.by_query
        first = index.run_starts()
        backwards = torch.from_numpy(index.layout.column(index.keys[first], "relation"))
        asked = inverse_of(backwards, num_relations).numpy()
        pairs = asked * self.num_entities + index.layout.column(index.keys[first], "head")
        order = stable_order(pairs)
        self._pairs, counts = pairs[order], np.diff(first, append=len(index))[order]
        relations = self._pairs // self.num_entities
        num_tails = np.bincount(relations, minlength=width)
        # A relation's heads are the tails of its inverse.
        num_heads = num_tails[inverse_of(torch.arange(width), num_relations).numpy()]
        cases = num_heads[relations].astype(np.float64)
        self._evidence = evidence(confidence(counts.astype(np.float64), cases))
        self._tally = Tally(relations, self._evidence)
        self._num_unused = self.num_entities - num_tails

    def of(
        self, relations: Int[np.ndarray, " N"], entities: Int[np.ndarray, " N"]
    ) -> Float[np.ndarray, " N"]:
        """Returns the evidence for each entity as the tail of a relation, in grains."""
        wanted = relations * self.num_entities + entities
        places = np.searchsorted(self._pairs, wanted).clip(max=max(len(self._pairs) - 1, 0))
        if len(self._pairs) == 0:
            return np.zeros(len(wanted))
        return np.where(self._pairs[places] == wanted, self._evidence[places], 0.0)

    def count(
        self, relations: Int[np.ndarray, " N"], values: Float[np.ndarray, " N"]
    ) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Returns how many entities have more evidence than this, and how many the same."""
        above, equal = self._tally.count(relations, values)
        return above, equal + np.where(values == 0, self._num_unused[relations], 0)
