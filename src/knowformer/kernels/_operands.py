"""What kernels take besides plain tensors: edges, what a batch of queries sees, weights, dropout.

Weights come packed, vectors of D floats in one tensor and D x D matrices in another, so that a
kernel takes two addresses and its gradients are two tensors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Int32, Int64, UInt8
from torch import Tensor

from knowformer.errors import DataError

Similarity = Literal["linear", "exponential", "random_features"]

Linear = tuple[Float[Tensor, "D D"], Float[Tensor, " D"]]  # (out x in), bias
Norm = tuple[Float[Tensor, " D"], Float[Tensor, " D"]]  # weight, bias

NO_HEAD = -1  # in the place of a query's head: none is marked


def check_ids(ids: Int[Tensor, " N"], size: int, what: str, *, least: int = 0) -> None:
    """Checks the ids of queries, by which compiled code reads and does not look again.

    Raises:
        DataError: one of them is out of range.
    """
    if not len(ids):
        return
    numbers = ids.numpy()
    lowest, highest = int(numbers.min()), int(numbers.max())
    if lowest < least or highest >= size:
        wrong = lowest if lowest < least else highest
        raise DataError(f"Expected {what} ids from {least} to {size - 1:,}, got {wrong:,}.")


@dataclass(frozen=True)
class Edges:
    """Subgraphs side by side, sorted twice: by receiver to gather, by sender to scatter.

    Edges that leave one sender by one relation carry the same message. Messages are numbered by
    sender and relation, so each sender owns one run of them, and each message one run of edges.
    Entities of all subgraphs are counted through where they index ``offsets`` and
    ``sender_offsets``; as sender and receiver they are numbered within their subgraph.
    """

    num_entities: int
    num_relations: int
    # Edges by receiver: those of u are offsets[u] .. offsets[u + 1].
    offsets: Int32[Tensor, " {num_entities}+1"]
    sender: Int32[Tensor, " E"]
    relation: Int32[Tensor, " E"]
    message: Int32[Tensor, " E"]
    # Messages by sender: those of v are sender_offsets[v] .. sender_offsets[v + 1].
    sender_offsets: Int32[Tensor, " {num_entities}+1"]
    message_sender: Int32[Tensor, " M"]
    message_relation: Int32[Tensor, " M"]
    # Edges by message: those of m are message_offsets[m] .. message_offsets[m + 1].
    message_offsets: Int32[Tensor, " M+1"]
    receiver: Int32[Tensor, " E"]
    by_message: Int[Tensor, " E"]  # where each of these stands in the order by receiver

    def keep(self, kept: Bool[Tensor, " E"]) -> "Edges":
        """Returns the edges that are kept. Compaction, never a new sort: both orders stay."""
        kept_by_message = kept[self.by_message]
        before = _counts_before(kept)
        return replace(
            self,
            offsets=before[self.offsets],
            sender=self.sender[kept],
            relation=self.relation[kept],
            message=self.message[kept],
            message_offsets=_counts_before(kept_by_message)[self.message_offsets],
            receiver=self.receiver[kept_by_message],
            by_message=before[self.by_message[kept_by_message]].long(),
        )

    @staticmethod
    def join(subgraphs: Sequence["Edges"]) -> "Edges":
        """Returns several subgraphs side by side, in this order."""
        edges = _starts([len(each.sender) for each in subgraphs])
        messages = _starts([len(each.message_sender) for each in subgraphs])

        def end_to_end(name: str, shifts: list[int] | None = None) -> Tensor:
            tensors: list[Tensor] = [getattr(each, name) for each in subgraphs]
            if shifts is None:
                return torch.cat(tensors)
            return torch.cat([t + shift for t, shift in zip(tensors, shifts, strict=True)])

        def bounds(name: str, starts: list[int]) -> Tensor:
            tensors: list[Tensor] = [getattr(each, name)[:-1] for each in subgraphs]
            shifted = [t + start for t, start in zip(tensors, starts, strict=False)]
            return torch.cat([*shifted, torch.tensor(starts[-1:], dtype=torch.int32)])

        return Edges(
            num_entities=sum(each.num_entities for each in subgraphs),
            num_relations=subgraphs[0].num_relations,
            offsets=bounds("offsets", edges),
            sender=end_to_end("sender"),
            relation=end_to_end("relation"),
            message=end_to_end("message", messages[:-1]),
            sender_offsets=bounds("sender_offsets", messages),
            message_sender=end_to_end("message_sender"),
            message_relation=end_to_end("message_relation"),
            message_offsets=bounds("message_offsets", edges),
            receiver=end_to_end("receiver"),
            by_message=end_to_end("by_message", edges[:-1]),
        )

    def subgraph(self, start: int, num_entities: int) -> "Edges":
        """Returns one of the subgraphs that stand side by side here, or several neighbours.

        Args:
            start: the first entity, counted through all subgraphs.
            num_entities: how many there are.
        """
        end = start + num_entities
        edges = slice(int(self.offsets[start]), int(self.offsets[end]))
        messages = slice(int(self.sender_offsets[start]), int(self.sender_offsets[end]))
        bounds = slice(messages.start, messages.stop + 1)
        return Edges(
            num_entities=num_entities,
            num_relations=self.num_relations,
            offsets=self.offsets[start : end + 1] - edges.start,
            sender=self.sender[edges],
            relation=self.relation[edges],
            message=self.message[edges] - messages.start,
            sender_offsets=self.sender_offsets[start : end + 1] - messages.start,
            message_sender=self.message_sender[messages],
            message_relation=self.message_relation[messages],
            message_offsets=self.message_offsets[bounds] - edges.start,
            receiver=self.receiver[edges],
            by_message=self.by_message[edges] - edges.start,
        )


def _counts_before(kept: Bool[Tensor, " E"]) -> Int32[Tensor, " E+1"]:
    """How many are kept before each position."""
    counts = torch.zeros(len(kept) + 1, dtype=torch.int32)
    torch.cumsum(kept, 0, dtype=torch.int32, out=counts[1:])
    return counts


def _starts(lengths: Sequence[int]) -> list[int]:
    """Where each of several runs starts when they stand end to end, and where the last one ends."""
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return starts


@dataclass(frozen=True)
class QueryView:
    """What B queries see: a ragged batch, N rows in all, a segment of rows for every query.

    Query b's rows are ``offsets[b] .. offsets[b + 1]``, one for each entity of its subgraph, which
    starts at entity ``starts[b]`` of the edges. Queries may share a subgraph. The whole graph is
    the simplest case: every query starts at 0 and has a row for every entity.
    """

    edges: Edges
    offsets: Int64[Tensor, " {len(heads)}+1"]
    starts: Int64[Tensor, " B"]
    heads: Int64[Tensor, " B"]  # each query's head, numbered within its subgraph; or NO_HEAD

    @staticmethod
    def whole(edges: Edges, heads: Int[Tensor, " B"]) -> "QueryView":
        """Returns the view of queries that all see one graph.

        Raises:
            DataError: a head is not an entity of the graph.
        """
        check_ids(heads, edges.num_entities, "head", least=NO_HEAD)
        offsets = torch.arange(len(heads) + 1) * edges.num_entities
        return QueryView(edges, offsets, torch.zeros_like(heads), heads)

    @staticmethod
    def join(views: Sequence["QueryView"]) -> "QueryView":
        """Returns the queries of several views, each with its own subgraphs, in one batch."""
        rows = _starts([view.num_rows for view in views])
        entities = _starts([view.edges.num_entities for view in views])
        offsets = [view.offsets[:-1] + row for view, row in zip(views, rows, strict=False)]
        starts = [view.starts + entity for view, entity in zip(views, entities, strict=False)]
        return QueryView(
            Edges.join([view.edges for view in views]),
            torch.cat([*offsets, torch.tensor([rows[-1]])]),
            torch.cat(starts),
            torch.cat([view.heads for view in views]),
        )

    def __len__(self) -> int:
        return self.heads.shape[0]  # quicker than len() of a tensor, and asked in every call

    @cached_property
    def num_rows(self) -> int:
        """N, rows of all queries together."""
        return int(self.offsets[-1])

    @cached_property
    def max_rows(self) -> int:
        """Rows of the query that has the most."""
        return int(self.offsets.diff().max()) if len(self) else 0

    @cached_property
    def are_apart(self) -> bool:
        """Whether every query has a subgraph of its own, in the order of the queries."""
        ends = self.starts + self.offsets.diff()
        return bool((self.starts[1:] >= ends[:-1]).all())

    @cached_property
    def is_whole(self) -> bool:
        """Whether every query sees all entities of the edges: rows are then a table B x V."""
        return self.num_rows == len(self) * self.edges.num_entities and not bool(self.starts.any())

    def queries(self, first: int, last: int) -> "QueryView":
        """Returns the view of queries ``first`` to ``last`` alone."""
        offsets = self.offsets[first : last + 1] - self.offsets[first]
        return QueryView(self.edges, offsets, self.starts[first:last], self.heads[first:last])

    def queries_apart(self, first: int, last: int) -> tuple["QueryView", slice]:
        """Returns the view of queries ``first`` to ``last``, which are apart, and their entities.

        It has neither entities nor edges of the others.
        """
        offsets = self.offsets[first : last + 1] - self.offsets[first]
        entities = self.entities_apart(first, last)
        edges = self.edges.subgraph(entities.start, entities.stop - entities.start)
        starts = self.starts[first:last] - entities.start
        return QueryView(edges, offsets, starts, self.heads[first:last]), entities

    def entities_apart(self, first: int, last: int) -> slice:
        """Returns the entities of queries ``first`` to ``last``, which are apart."""
        length = self.offsets[last] - self.offsets[last - 1]
        return slice(int(self.starts[first]), int(self.starts[last - 1] + length))

    def select(self, queries: Int64[Tensor, " b"]) -> "QueryView":
        """Returns the view of some queries, by their numbers; the edges stay as they are."""
        lengths = self.offsets.diff()[queries]
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        return QueryView(self.edges, offsets, self.starts[queries], self.heads[queries])

    def one_by_one(self) -> Iterator[tuple["QueryView", slice]]:
        """Yields every query by itself, with edges of its own subgraph alone, and its rows."""
        bounds: list[int] = self.offsets.tolist()
        for number, start in enumerate(self.starts.tolist()):
            segment = slice(bounds[number], bounds[number + 1])
            edges = self.edges.subgraph(start, segment.stop - segment.start)
            yield QueryView.whole(edges, self.heads[number : number + 1]), segment


class HopWeights(NamedTuple):
    """Weights of one hop's update: linear maps with ReLU between, then norm and residual or not.

    The norm is present in the released code's form and absent in the paper's; where it is present
    the hop also adds its input to its output.
    """

    vectors: Float[Tensor, "K D"]  # self_weight, a bias per map, the norm's weight and bias
    matrices: Float[Tensor, "N D D"]  # each (in x out)
    norm: bool

    @staticmethod
    def pack(self_weight: Tensor, linear: Sequence[Linear], norm: Norm | None) -> "HopWeights":
        """Lays weights side by side."""
        vectors = [self_weight, *(bias for _, bias in linear), *(norm or ())]
        matrices = [weight.t() for weight, _ in linear]
        return HopWeights(torch.stack(vectors), torch.stack(matrices), norm is not None)


class InputWeights(NamedTuple):
    """Weights of a stream's input: two linear maps.

    ``extra`` is what joins the hidden layer besides the entity states: the first map's bias, and in
    the query stream what the map makes of each entity's noise.
    """

    extra: Float[Tensor, "V_or_1 D"]
    vectors: Float[Tensor, "K D"]  # the second map's bias, and the head's indicator if there is one
    matrices: Float[Tensor, "2 D D"]  # each (in x out)

    @staticmethod
    def pack(
        extra: Float[Tensor, "V_or_1 D"],
        first: Float[Tensor, "D D"],
        second: Linear,
        head_indicator: Float[Tensor, " D"] | None,
    ) -> "InputWeights":
        """Lays weights side by side; the indicator joins the hidden layer at the query's head."""
        weight, bias = second
        vectors = [bias] if head_indicator is None else [bias, head_indicator]
        return InputWeights(extra, torch.stack(vectors), torch.stack([first.t(), weight.t()]))

    @property
    def marks_head(self) -> bool:
        """Whether the query's head is told apart from other entities."""
        return len(self.vectors) == 2

    def of_entities(self, start: int, count: int) -> "InputWeights":
        """Returns the weights for some of the entities alone."""
        if len(self.extra) == 1:
            return self
        return self._replace(extra=self.extra[start : start + count])


class StreamWeights(NamedTuple):
    """Weights of a stream: what it starts from, and its hops."""

    start: InputWeights
    hops: tuple[HopWeights, ...]


class AttendWeights(NamedTuple):
    """Weights of attention, feed-forward and their norms."""

    vectors: Float[Tensor, "K D"]  # biases of q and k (if any), norm, biases of both maps, norm
    matrices: Float[Tensor, "N D D"]  # q and k (if any), expand, contract; each (in x out)
    similarity: Similarity
    features: Float[Tensor, "H C F"] | None  # directions of random features

    @staticmethod
    def pack(
        query_key: tuple[Linear, Linear] | None,
        attention_norm: Norm,
        feed_forward: tuple[Linear, Linear],
        output_norm: Norm,
        similarity: Similarity = "linear",
        features: Float[Tensor, "H C F"] | None = None,
    ) -> "AttendWeights":
        """Lays weights side by side; a model without attention has no q and k."""
        linear = [*(query_key or ()), *feed_forward]
        biases = [bias for _, bias in linear]
        vectors = [*biases[:-2], *attention_norm, *biases[-2:], *output_norm]
        matrices = torch.stack([weight.t() for weight, _ in linear])
        return AttendWeights(torch.stack(vectors), matrices, similarity, features)


class ScoreWeights(NamedTuple):
    """Weights of the map from an entity's last state to its score."""

    vectors: Float[Tensor, "2 D"]  # the hidden layer's bias, the last map
    matrices: Float[Tensor, "1 D D"]  # (in x out)
    bias: Float[Tensor, " 1"]

    @staticmethod
    def pack(
        hidden: Linear, last: tuple[Float[Tensor, "1 D"], Float[Tensor, " 1"]]
    ) -> "ScoreWeights":
        """Lays weights side by side."""
        return ScoreWeights(torch.stack([hidden[1], last[0][0]]), hidden[0].t()[None], last[1])


@dataclass(frozen=True)
class Dropout:
    """Which hidden activations stay: those whose random byte is at least ``threshold``."""

    random_bytes: UInt8[Tensor, "N D"]
    threshold: int  # of 256: a rate of 0.1 drops 26 of 256

    @property
    def scale(self) -> float:
        """What is kept is scaled so that its mean stays."""
        return 256.0 / (256.0 - self.threshold)
