"""Immutable edges, sorted once by receiver, sender and relation; hiding is compaction."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.graph.edge_orders import EarlierEdges, EdgeIndices, EdgeLists
from knowformer.graph.fact_index import BY_QUERY, BY_RECEIVER, FactIndex
from knowformer.graph.id_ranges import check_facts
from knowformer.graph.inverse import inverse_facts, num_with_inverses, with_inverse_facts
from knowformer.kernels.interface import Edges


class Adjacency:
    """The facts of a graph and their inverses as edges that carry messages from head to tail.

    A set of edges: the order of the facts and their repetition are irrelevant.
    """

    def __init__(self, facts: Int[Tensor, "N 3"], *, num_entities: int, num_relations: int) -> None:
        """Sorts the facts.

        Raises:
            DataError: an id is out of range; kernels go by these edges and do not look again.
        """
        check_facts(facts, num_entities=num_entities, num_relations=num_relations)
        sizes = {"num_entities": num_entities, "num_relations": num_relations}
        indices = [
            FactIndex.with_inverses(facts.numpy(), order, **sizes)
            for order in (BY_RECEIVER, BY_QUERY)
        ]
        self._indices = EdgeIndices(num_entities, num_with_inverses(num_relations), *indices)
        self.num_relations = num_relations  # as named, without inverses
        self._earlier: EarlierEdges | None = None
        self._stored: EdgeLists | None = None
        self.memo: dict[object, Any] = {}
        """What others have made of these edges, to be kept as long as they are."""

    @classmethod
    def of_sorted(
        cls, by_query: FactIndex, by_pair: FactIndex, lists: EdgeLists, *, num_relations: int
    ) -> "Adjacency":
        """Takes edges that are sorted already, such as stored ones, and looks at none of them.

        Their ids must be in range: kernels do not look again.

        Args:
            by_query: the facts and their inverses by head, relation and tail.
            by_pair: the same by tail, head and relation.
            lists: what walks need of them.
            num_relations: as named, without inverses.
        """
        result = cls.__new__(cls)
        width, num_entities = num_with_inverses(num_relations), len(lists.offsets) - 1
        result.num_relations = num_relations
        result._indices = EdgeIndices(num_entities, width, by_pair, by_query)
        result._earlier, result._stored = None, lists
        result.memo = {}
        result.lists = lists
        return result

    def changed(
        self, *, added: Int[Tensor, "A 3"], removed: Int[Tensor, "B 3"], num_entities: int
    ) -> "Adjacency":
        """Returns the adjacency after a change, by copying; this one stays as it is.

        Args:
            added: facts that are not there.
            removed: facts that are there.
            num_entities: how many entities there are then.
        """
        come = with_inverse_facts(added, self.num_relations).numpy()
        gone = with_inverse_facts(removed, self.num_relations).numpy()
        result = Adjacency.__new__(Adjacency)
        result.num_relations = self.num_relations
        result._indices = self._indices.changed(come, gone, num_entities)
        earlier = self._earlier
        if "edges" in self.__dict__ or self._stored is not None:
            earlier = EarlierEdges.unchanged(self.edges, self._indices)
        result._earlier = earlier and earlier.then(come, gone, result._indices)
        result._stored = None
        result.memo = {}
        return result

    @property
    def num_entities(self) -> int:
        """Returns V."""
        return self._indices.num_entities

    @property
    def num_edges(self) -> int:
        """Returns E, inverse edges included."""
        return len(self._indices.by_receiver)

    @property
    def by_query(self) -> FactIndex:
        """The facts and their inverses by head, relation and tail."""
        return self._indices.by_sender

    @property
    def by_pair(self) -> FactIndex:
        """The facts and their inverses by tail, head and relation: what links two entities."""
        return self._indices.by_receiver

    @cached_property
    def receiver(self) -> Int[Tensor, " E"]:
        """The tail of each edge's fact."""
        return torch.from_numpy(self._indices.by_receiver.column("tail"))

    @cached_property
    def sender(self) -> Int[Tensor, " E"]:
        """The head of each edge's fact."""
        return torch.from_numpy(self._indices.by_receiver.column("head"))

    @cached_property
    def relation(self) -> Int[Tensor, " E"]:
        """The relation of each edge, which may be an inverse."""
        return torch.from_numpy(self._indices.by_receiver.column("relation"))

    @cached_property
    def edges(self) -> Edges:
        """The edges in the form that kernels take."""
        earlier, self._earlier = self._earlier, None  # no chain of snapshots is kept
        if earlier:
            return earlier.build_edges(self.num_entities)
        # Stored lists have been checked, so kernels go by them and not by the stored indices.
        return self._indices.build_edges(self._stored)

    @cached_property
    def lists(self) -> EdgeLists:
        """Both orders of the edges, as walks over the graph take them."""
        return EdgeLists.of(self.edges)

    def build_lists(self) -> EdgeLists:
        """Makes the lists anew, without the rest of what kernels take, which is larger."""
        return self._indices.build_lists()

    def has_fact(self, facts: Int[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        """Returns True where a fact is there; it may be an inverse."""
        return torch.from_numpy(self.by_query.has_fact(facts.numpy()))

    def without_facts(self, facts: Int[Tensor, "N 3"]) -> Bool[Tensor, " E"]:
        """Returns False at the edges of these facts, in both directions; facts may be inverses."""
        directed = torch.cat([facts, inverse_facts(facts, self.num_relations)])
        places, is_there = self._indices.by_receiver.find(directed.numpy())
        kept = np.ones(self.num_edges, dtype=bool)
        kept[places[is_there]] = False
        return torch.from_numpy(kept)

    def without_links(self, facts: Int[Tensor, "N 3"]) -> Bool[Tensor, " E"]:
        """Returns False at every edge between the head and the tail of one of these facts."""
        heads, _, tails = facts.numpy().T
        changes = np.zeros(self.num_edges + 1, dtype=np.int64)
        for sender, receiver in ((heads, tails), (tails, heads)):
            # Sorted by receiver and sender: the edges of one pair stand together.
            start, stop = self._indices.by_receiver.runs(receiver, sender)
            np.add.at(changes, start, 1)
            np.subtract.at(changes, stop, 1)
        return torch.from_numpy(np.cumsum(changes)[:-1] == 0)
