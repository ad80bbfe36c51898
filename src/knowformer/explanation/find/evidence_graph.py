"""EvidenceGraph: the facts that an answer may be explained by, and their edges.

A fact is two edges, one in each direction; removing a fact removes both.
"""

from collections.abc import Collection
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.fact_index import KeyLayout
from knowformer.graph.inverse import base_relation, is_inverse
from knowformer.graph.traversal import UNREACHED, distances
from knowformer.kernels.interface import Edges

Integers = npt.NDArray[np.int64]


class EvidenceGraph:
    """A graph without hidden facts, its edges numbered in the order of receivers."""

    def __init__(self, adjacency: Adjacency, hidden: Int[Tensor, "N 3"] | None = None) -> None:
        kept = torch.ones(adjacency.num_edges, dtype=torch.bool)
        if hidden is not None:
            kept = adjacency.without_facts(hidden)
        self.num_entities = adjacency.num_entities
        self.hides_something = not bool(kept.all())
        self.edges: Edges = adjacency.edges.keep(kept) if self.hides_something else adjacency.edges
        self.sender: Integers = adjacency.sender[kept].numpy()
        self.receiver: Integers = adjacency.receiver[kept].numpy()
        self.relation: Integers = adjacency.relation[kept].numpy()
        self.offsets: Integers = self.edges.offsets.long().numpy()
        self._num_relations = adjacency.num_relations

    @cached_property
    def fact_of_edge(self) -> Integers:
        """The number of each edge's fact."""
        relation = torch.from_numpy(self.relation)
        backwards: npt.NDArray[np.bool_] = is_inverse(relation, self._num_relations).numpy()
        head = np.where(backwards, self.receiver, self.sender)
        tail = np.where(backwards, self.sender, self.receiver)
        facts = np.stack([head, base_relation(relation, self._num_relations).numpy(), tail], 1)
        numbers: Integers = np.unique(KeyLayout.around(facts).keys(facts), return_inverse=True)[1]
        return numbers

    @property
    def num_facts(self) -> int:
        """How many facts there are."""
        return int(self.fact_of_edge.max(initial=-1)) + 1

    def per_fact(self, edge_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the sum over both edges of each fact."""
        sums = np.zeros(self.num_facts)
        np.add.at(sums, self.fact_of_edge, edge_values)
        return sums

    def without(self, facts: Collection[int]) -> Edges:
        """Returns all edges but those of these facts."""
        return self.edges.keep(torch.from_numpy(~np.isin(self.fact_of_edge, list(facts))))

    def only(self, facts: Collection[int]) -> Edges:
        """Returns the edges of these facts alone."""
        return self.edges.keep(torch.from_numpy(np.isin(self.fact_of_edge, list(facts))))

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
