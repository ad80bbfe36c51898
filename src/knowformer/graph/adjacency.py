"""Immutable edges, sorted once by receiver, sender and relation; hiding is compaction."""

from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.graph.inverse import inverse_facts, num_with_inverses, with_inverse_facts
from knowformer.kernels.interface import Edges


class Adjacency:
    """The facts of a graph and their inverses as edges that carry messages from head to tail."""

    def __init__(self, facts: Int[Tensor, "N 3"], *, num_entities: int, num_relations: int) -> None:
        self.num_entities = num_entities
        self.num_relations = num_relations  # as named, without inverses
        self._width = num_with_inverses(num_relations)
        directed = with_inverse_facts(facts, num_relations)
        # A set of edges: the order of the facts and their repetition are irrelevant.
        self._keys: Tensor = torch.unique(self._key(directed))
        self.receiver = self._keys // (num_entities * self._width)
        self.sender = self._keys // self._width % num_entities
        self.relation = self._keys % self._width

    def _key(self, directed: Int[Tensor, "N 3"]) -> Int[Tensor, " N"]:
        """One integer per edge, ordered by receiver, then sender, then relation."""
        sender, relation, receiver = directed.unbind(1)
        return (receiver * self.num_entities + sender) * self._width + relation

    @property
    def num_edges(self) -> int:
        """Returns E, inverse edges included."""
        return len(self._keys)

    @cached_property
    def edges(self) -> Edges:
        """The edges in the form that kernels take."""
        entities = torch.arange(self.num_entities + 1)
        pair: Tensor
        message: Tensor
        pair, message = torch.unique(self.sender * self._width + self.relation, return_inverse=True)
        by_message = torch.argsort(message, stable=True)
        message_sender = pair // self._width
        messages = torch.arange(len(pair) + 1)
        return Edges(
            num_entities=self.num_entities,
            num_relations=self._width,
            offsets=torch.searchsorted(self.receiver, entities).int(),
            sender=self.sender.int(),
            relation=self.relation.int(),
            message=message.int(),
            sender_offsets=torch.searchsorted(message_sender, entities).int(),
            message_sender=message_sender.int(),
            message_relation=(pair % self._width).int(),
            message_offsets=torch.searchsorted(message[by_message], messages).int(),
            receiver=self.receiver[by_message].int(),
            by_message=by_message,
        )

    def without_facts(self, facts: Int[Tensor, "N 3"]) -> Bool[Tensor, " E"]:
        """Returns False at the edges of these facts, in both directions; facts may be inverses."""
        keys = self._key(torch.cat([facts, inverse_facts(facts, self.num_relations)]))
        at = torch.searchsorted(self._keys, keys).clamp_(max=max(self.num_edges - 1, 0))
        kept = torch.ones(self.num_edges, dtype=torch.bool)
        if self.num_edges:
            kept[at[self._keys[at] == keys]] = False
        return kept

    def without_links(self, facts: Int[Tensor, "N 3"]) -> Bool[Tensor, " E"]:
        """Returns False at every edge between the head and the tail of one of these facts."""
        heads, _, tails = facts.unbind(1)
        kept_changes = torch.zeros(self.num_edges + 1, dtype=torch.long)
        for sender, receiver in ((heads, tails), (tails, heads)):
            # Sorted by receiver and sender: the edges of one pair stand together.
            first = (receiver * self.num_entities + sender) * self._width
            start = torch.searchsorted(self._keys, first)
            stop = torch.searchsorted(self._keys, first + self._width)
            ones = torch.ones_like(start)
            kept_changes.index_add_(0, start, ones).index_add_(0, stop, -ones)
        return torch.cumsum(kept_changes, 0)[:-1] == 0
