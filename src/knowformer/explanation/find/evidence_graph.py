"""EvidenceGraph: what a query sees, which is what an answer may be explained by.

A fact is two edges, one in each direction; removing a fact removes both.
"""

from collections.abc import Collection
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.fact_index import KeyLayout
from knowformer.graph.inverse import base_relation, is_inverse
from knowformer.graph.traversal import UNREACHED, distances
from knowformer.kernels.interface import Edges
from knowformer.views.views import Outside

Integers = npt.NDArray[np.int64]


class EvidenceGraph:
    """A graph or a part of it; its entities are numbered, and its edges by receiver."""

    def __init__(
        self,
        edges: Edges,
        entities: Int[Tensor, " n"] | None = None,
        outside: Outside | None = None,
    ) -> None:
        """Takes the edges that a query sees.

        Args:
            edges: among its entities.
            entities: their ids in the graph, rising; None: all of the graph.
            outside: the order of the others.
        """
        self.edges = edges
        self.entities = torch.arange(edges.num_entities) if entities is None else entities
        self.outside = outside
        self.num_entities = edges.num_entities
        self.offsets: Integers = edges.offsets.long().numpy()

    @cached_property
    def sender(self) -> Integers:
        """The entity that each edge comes from."""
        return self.edges.sender.long().numpy()

    @cached_property
    def relation(self) -> Integers:
        """The relation of each edge, which may be an inverse."""
        return self.edges.relation.long().numpy()

    @cached_property
    def receiver(self) -> Integers:
        """The entity that each edge goes to."""
        return np.repeat(np.arange(self.num_entities), np.diff(self.offsets))

    @property
    def fact_of_edge(self) -> Integers:
        """The number of each edge's fact."""
        return self._numbered[1]

    @property
    def num_facts(self) -> int:
        """How many facts there are."""
        return len(self._numbered[0])

    def facts(self, numbers: Collection[int]) -> Int[Tensor, "N 3"]:
        """Returns facts (head, relation, tail) in ids of the graph."""
        facts = torch.from_numpy(self._numbered[0][np.array([*numbers], dtype=np.int64)])
        head, relation, tail = facts.unbind(1)
        return torch.stack([self.entities[head], relation, self.entities[tail]], 1)

    @cached_property
    def _numbered(self) -> tuple[Integers, Integers]:
        """Every fact once, and the number of each edge's."""
        relation, num_relations = torch.from_numpy(self.relation), self.edges.num_relations // 2
        backwards: npt.NDArray[np.bool_] = is_inverse(relation, num_relations).numpy()
        head = np.where(backwards, self.receiver, self.sender)
        tail = np.where(backwards, self.sender, self.receiver)
        facts = np.stack([head, base_relation(relation, num_relations).numpy(), tail], 1)
        layout = KeyLayout.around(facts)
        keys, numbers = np.unique(layout.keys(facts), return_inverse=True)
        return layout.facts(keys), numbers

    def per_fact(self, edge_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the sum over both edges of each fact."""
        sums = np.zeros(self.num_facts)
        np.add.at(sums, self.fact_of_edge, edge_values)
        return sums

    def distances(self, entity: int) -> Integers:
        """Returns the length of the shortest path from ``entity`` to each; else ``UNREACHED``.

        Facts are walked both ways, so distances are symmetric.
        """
        return distances(entity, self.sender, self.receiver, self.num_entities)

    def walk_lengths(self, head: int, answer: int) -> Integers:
        """Returns the length of the shortest walk from head to answer through each fact."""
        through = self.distances(head)[self.sender] + 1 + self.distances(answer)[self.receiver]
        lengths = np.full(self.num_facts, 2 * UNREACHED)
        np.minimum.at(lengths, self.fact_of_edge, through)
        return lengths
