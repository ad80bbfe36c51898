"""The edges in the two orders that kernels walk them in: built from facts, or from earlier edges.

Building takes a sort of all edges. A few facts more or less leave both orders as they are but for
a few places: then every array is copied around those, and its numbers are moved on.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from knowformer.graph.fact_index import FactIndex, Ids
from knowformer.graph.splice import Splice
from knowformer.kernels.interface import Edges

Ints = npt.NDArray[np.int32]

MANY_CHANGES = 100
MOST_CHANGES = 0.01  # of all edges; when both are passed, building anew is as quick


class EdgeLists(NamedTuple):
    """Arrays of ``Edges`` that walks over the graph need; they may be mapped from files."""

    offsets: Ints
    sender: Ints
    relation: Ints
    sender_offsets: Ints
    message_relation: Ints
    message_offsets: Ints
    receiver: Ints

    @classmethod
    def of(cls, edges: Edges) -> "EdgeLists":
        """Returns the arrays of edges, not copied."""
        return cls(*(getattr(edges, name).numpy() for name in cls._fields))

    def message_sender(self) -> Ints:
        """Returns the sender of every message."""
        senders = np.arange(len(self.sender_offsets) - 1, dtype=np.int32)
        return np.repeat(senders, np.diff(self.sender_offsets))


@dataclass(frozen=True)
class EdgeIndices:
    """The facts and their inverses, sorted as kernels gather messages and as they scatter them."""

    num_entities: int
    num_relations: int  # with inverses
    by_receiver: FactIndex  # by tail, head and relation
    by_sender: FactIndex  # by head, relation and tail

    def changed(self, added: Ids, removed: Ids, num_entities: int) -> "EdgeIndices":
        """Returns the indices after a change of facts; inverses are among those given."""
        sizes = {"num_entities": num_entities, "num_relations": self.num_relations}
        by_receiver, by_sender = (
            index.resized(**sizes).changed(added, removed)
            for index in (self.by_receiver, self.by_sender)
        )
        return EdgeIndices(num_entities, self.num_relations, by_receiver, by_sender)

    def build_lists(self) -> EdgeLists:
        """Makes the lists; messages are the distinct pairs of sender and relation."""
        by_receiver, by_sender = self.by_receiver, self.by_sender
        first = by_sender.run_starts()
        at_first = by_sender.keys[first]
        sender = by_sender.layout.column(at_first, "head")
        return EdgeLists(
            offsets=by_receiver.offsets(self.num_entities).astype(np.int32),
            sender=by_receiver.column("head").astype(np.int32),
            relation=by_receiver.column("relation").astype(np.int32),
            sender_offsets=_rises(sender, self.num_entities),
            message_relation=by_sender.layout.column(at_first, "relation").astype(np.int32),
            message_offsets=np.append(first, len(by_sender)).astype(np.int32),
            receiver=by_sender.column("tail").astype(np.int32),
        )

    def build_edges(self, lists: EdgeLists | None = None) -> Edges:
        """Makes the edges for kernels; from lists of the same edges, where these are there."""
        lists = lists or self.build_lists()
        receiver = lists.receiver.astype(np.int64)
        # Receivers with places in one integer: numpy sorts these faster than it finds an order.
        places = np.sort(receiver << 32 | np.arange(len(receiver))) & (2**32 - 1)
        by_message = np.empty_like(places)
        by_message[places] = np.arange(len(places))
        sizes = np.diff(lists.message_offsets)
        message = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        return Edges(
            num_entities=self.num_entities,
            num_relations=self.num_relations,
            message=_int32(message[places]),
            message_sender=_int32(lists.message_sender()),
            by_message=torch.from_numpy(by_message),
            **{name: torch.from_numpy(array) for name, array in lists._asdict().items()},
        )


@dataclass(frozen=True)
class EarlierEdges:
    """Edges of an earlier snapshot, and the facts that have come and gone since."""

    edges: Edges
    indices: EdgeIndices
    added: Ids  # as keys of the earlier index by receiver, rising
    removed: Ids

    @classmethod
    def unchanged(cls, edges: Edges, indices: EdgeIndices) -> "EarlierEdges":
        """Starts from edges with nothing changed."""
        none = np.empty(0, dtype=np.int64)
        return cls(edges, indices, none, none)

    def then(self, added: Ids, removed: Ids, later: EdgeIndices) -> "EarlierEdges | None":
        """Returns this with a further change; None when building anew is as quick."""
        layout = self.indices.by_receiver.layout
        if later.by_receiver.layout != layout:
            return None
        new, gone = layout.keys(added), layout.keys(removed)
        net = replace(
            self,
            added=np.union1d(np.setdiff1d(self.added, gone), np.setdiff1d(new, self.removed)),
            removed=np.union1d(np.setdiff1d(self.removed, new), np.setdiff1d(gone, self.added)),
        )
        few = max(MANY_CHANGES, MOST_CHANGES * len(later.by_receiver))
        return net if len(net.added) + len(net.removed) <= few else None

    def build_edges(self, num_entities: int) -> Edges:
        """Makes the edges after the change from those before it, by copying."""
        indices, old = self.indices, self.edges
        layout = indices.by_receiver.layout
        removed = layout.facts(self.removed)
        rows, keys = indices.by_receiver.splice(layout.facts(self.added), removed)
        added = layout.facts(keys)
        scatter, _ = indices.by_sender.splice(added, removed)
        order = np.argsort(indices.by_sender.layout.keys(added))
        messages = _change_messages(old, indices.by_sender, added[order], scatter)
        message = np.empty(len(order), dtype=np.int32)
        message[order] = messages.of_added
        gathered = _counts(added[:, 2], num_entities) - _counts(removed[:, 2], num_entities)
        return Edges(
            num_entities=num_entities,
            num_relations=old.num_relations,
            offsets=_shifted(old.offsets, gathered),
            sender=_int32(rows.apply(old.sender.numpy(), added[:, 0])),
            relation=_int32(rows.apply(old.relation.numpy(), added[:, 1])),
            message=_int32(rows.apply(messages.splice.moved(old.message.numpy()), message)),
            sender_offsets=_shifted(old.sender_offsets, messages.sent(old, num_entities)),
            message_sender=_int32(
                messages.splice.apply(old.message_sender.numpy(), messages.new[:, 0])
            ),
            message_relation=_int32(
                messages.splice.apply(old.message_relation.numpy(), messages.new[:, 1])
            ),
            message_offsets=_int32(np.append(0, np.cumsum(messages.counts))),
            receiver=_int32(scatter.apply(old.receiver.numpy(), added[order, 2])),
            by_message=torch.from_numpy(
                scatter.apply(rows.moved(old.by_message.numpy()), rows.new_numbers[order])
            ),
        )


@dataclass(frozen=True)
class _MessageChange:
    """What becomes of the messages when edges come and go."""

    splice: Splice
    new: Ids  # an edge (head, relation, tail) of each message that comes
    counts: Ints  # edges per message, afterwards
    of_added: Ids  # the message of each edge that comes

    def sent(self, old: Edges, num_entities: int) -> Ids:
        """Returns how many messages more each sender has."""
        gone = old.message_sender.numpy()[self.splice.removed]
        return _counts(self.new[:, 0], num_entities) - _counts(gone, num_entities)


def _change_messages(
    old: Edges, by_sender: FactIndex, added: Ids, scatter: Splice
) -> _MessageChange:
    """A message comes with its first edge and goes with its last; ``added`` is in their order."""
    num_messages = len(old.message_sender)
    start, stop = by_sender.runs(added[:, 0], added[:, 1])
    number = np.full(len(added), num_messages)  # of its message, or of the one it stands before
    inside = start < len(by_sender)
    number[inside] = _message_at(old, start[inside])
    left = _message_at(old, scatter.removed)
    is_new = start == stop
    counts = np.diff(old.message_offsets.numpy())
    np.subtract.at(counts, left, 1)
    np.add.at(counts, number[~is_new], 1)
    gone = np.unique(left)
    is_first = is_new.copy()
    is_first[1:] &= (added[1:, :2] != added[:-1, :2]).any(1)
    splice = Splice(
        num_messages, removed=gone[counts[gone] == 0], places=number[is_first].astype(np.int64)
    )
    nth = np.cumsum(is_first) - 1
    of_added = splice.moved(number)
    of_added[is_new] = splice.new_numbers[nth[is_new]]
    sizes = np.bincount(nth[is_new], minlength=len(splice.places))
    return _MessageChange(splice, added[is_first], splice.apply(counts, sizes), of_added)


def _rises(numbers: Ids, size: int) -> Ints:
    """Returns where each of ``size`` numbers begins in a rising list, and where the last ends."""
    return np.searchsorted(numbers, np.arange(size + 1)).astype(np.int32)


def _message_at(old: Edges, places: Ids) -> Ids:
    """The messages of edges, given their places in the order by message."""
    return old.message.numpy()[old.by_message.numpy()[places]].astype(np.int64)


def _counts(entities: npt.NDArray[np.integer], num_entities: int) -> Ids:
    return np.bincount(entities, minlength=num_entities)


def _shifted(offsets: Tensor, more: Ids) -> Tensor:
    """Offsets of runs that have become longer by so much; new runs are at the end."""
    old = offsets.numpy()
    grown = np.append(old, np.full(len(more) + 1 - len(old), old[-1]))
    grown[1:] += np.cumsum(more)
    return _int32(grown)


def _int32(numbers: npt.NDArray[np.integer]) -> Tensor:
    return torch.from_numpy(numbers.astype(np.int32, copy=False))
