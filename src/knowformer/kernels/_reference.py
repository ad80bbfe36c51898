"""Obvious torch: defines what is correct, runs in float32 and float64.

Everything is a function of one query at a time: no sum crosses the batch, so a query's result does
not depend on its batch mates.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag, layer_norm, linear, normalize

from knowformer.kernels._operands import (
    NO_HEAD,
    AttendWeights,
    Dropout,
    Edges,
    HopWeights,
    InputWeights,
    QueryView,
    ScoreWeights,
    Similarity,
    StreamWeights,
)


class ReferenceBackend:
    """The backend that the others are measured against."""

    def is_batch_invariant(self, *, width: int, num_heads: int, similarity: Similarity) -> bool:
        """Never: BLAS picks its routine by the size of the whole batch."""
        del width, num_heads, similarity
        return False

    def across(self, parallel_map: Callable[..., Any]) -> "ReferenceBackend":
        """See ``Backend.across``: torch has threads of its own."""
        del parallel_map
        return self

    def hop(
        self,
        states: Float[Tensor, "N D"],
        relation_vectors: Float[Tensor, "B R D"],
        view: QueryView,
        weights: HopWeights,
        *,
        message_weights: Float[Tensor, " E"] | None = None,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.hop``."""
        if not view.is_whole:
            single = enumerate(view.one_by_one())
            return _joined(
                ReferenceBackend.hop(self, states[at], relation_vectors[b : b + 1], own, weights)
                for b, (own, at) in single
            )
        vectors, table = weights.vectors, _as_table(states, view)
        sums = sum_messages(table, relation_vectors, view.edges, message_weights)
        update = vectors[0] * table + sums
        for number, weight in enumerate(weights.matrices):
            update = affine(torch.relu(update) if number else update, weight, vectors[1 + number])
        if weights.norm:
            update = table + layer_norm(update, update.shape[-1:], vectors[-2], vectors[-1])
        return update.flatten(0, 1)

    def stream_input(
        self,
        states: Float[Tensor, "N D"] | None,
        weights: InputWeights,
        view: QueryView,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.stream_input``."""
        if not view.is_whole:
            starts = view.starts.tolist()
            return _joined(
                ReferenceBackend.stream_input(
                    self,
                    None if states is None else states[at],
                    weights.of_entities(start, own.num_rows),
                    own,
                )
                for start, (own, at) in zip(starts, view.one_by_one(), strict=True)
            )
        num_entities = view.edges.num_entities
        hidden = weights.extra.expand(len(view), num_entities, -1)
        if states is not None:
            hidden = hidden + _as_table(states, view) @ weights.matrices[0]
        if weights.marks_head:
            is_head = torch.arange(num_entities) == view.heads[:, None]
            hidden = hidden + is_head[..., None] * weights.vectors[1]
        return affine(torch.relu(hidden), weights.matrices[1], weights.vectors[0]).flatten(0, 1)

    def stream(
        self,
        states: Float[Tensor, "N D"] | None,
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "B R D"]],
        view: QueryView,
        *,
        message_weights: Sequence[Float[Tensor, " E"]] | None = None,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.stream``."""
        weighed = message_weights or [None] * len(weights.hops)
        states = self.stream_input(states, weights.start, view)
        for hop, vectors, each in zip(weights.hops, relation_vectors, weighed, strict=True):
            states = self.hop(states, vectors, view, hop, message_weights=each)
        return states

    def stream_background(
        self,
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        edges: Edges,
    ) -> Sequence[Float[Tensor, "V D"]]:
        """See ``Backend.stream_background``."""
        view = QueryView.whole(edges, torch.tensor([NO_HEAD]))
        states = [self.stream_input(None, weights.start, view)]
        for hop, vectors in zip(weights.hops, relation_vectors, strict=True):
            states.append(self.hop(states[-1], vectors, view, hop))
        return states

    def stream_near_heads(
        self,
        background: Sequence[Float[Tensor, "V D"]],
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        view: QueryView,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.stream_near_heads``: everything is computed."""
        del background
        each = [vectors.expand(len(view), -1, -1) for vectors in relation_vectors]
        return self.stream(None, weights, each, view)

    def attend(
        self,
        states: Float[Tensor, "N D"],
        query_key_states: Float[Tensor, "N D"],
        value_states: Float[Tensor, "N D"],
        weights: AttendWeights,
        view: QueryView,
        *,
        num_heads: int,
        dropout: Dropout | None,
        attended: Float[Tensor, "N H"] | None = None,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.attend``."""
        if view.is_whole:
            views = [(view, slice(0, view.num_rows))]
        else:
            views = list(view.one_by_one())
        gathered = _joined(
            gather_attended(
                _as_table(query_key_states[at], own),
                _as_table(value_states[at], own),
                weights,
                num_heads,
                None if attended is None else attended[at].view(len(own), -1, num_heads),
            ).flatten(0, 1)
            for own, at in views
        )
        return self.finish_layer(states, gathered, weights, dropout=dropout)

    def finish_layer(
        self,
        states: Float[Tensor, "N D"],
        gathered: Float[Tensor, "N D"],
        weights: AttendWeights,
        *,
        dropout: Dropout | None,
    ) -> Float[Tensor, "N D"]:
        """Residual, norm, feed-forward, residual, norm (eq. 11)."""
        shape = states.shape[-1:]
        gamma1, beta1, b1, b2, gamma2, beta2 = weights.vectors[-6:]
        expand, contract = weights.matrices[-2:]
        a = layer_norm(states + gathered, shape, gamma1, beta1)
        hidden = torch.relu(affine(a, expand, b1))
        if dropout is not None:
            hidden = hidden * (dropout.random_bytes >= dropout.threshold) * dropout.scale
        return layer_norm(a + affine(hidden, contract, b2), shape, gamma2, beta2)

    def score(self, states: Float[Tensor, "N D"], weights: ScoreWeights) -> Float[Tensor, " N"]:
        """See ``Backend.score``."""
        hidden = torch.relu(affine(states, weights.matrices[0], weights.vectors[0]))
        return linear(hidden, weights.vectors[1:], weights.bias).squeeze(-1)


def _as_table(states: Float[Tensor, "N D"], view: QueryView) -> Float[Tensor, "B V D"]:
    return states.view(len(view), -1, states.shape[-1])


def _joined(segments: Any) -> Float[Tensor, "N D"]:
    tensors = list(segments)
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


def affine(
    states: Float[Tensor, "*N D"], weight: Float[Tensor, "D D"], bias: Float[Tensor, " D"]
) -> Float[Tensor, "*N D"]:
    """A linear map, (in x out), and its bias."""
    return linear(states, weight.t(), bias)


def sum_messages(
    states: Float[Tensor, "B V D"],
    relation_vectors: Float[Tensor, "B R D"],
    edges: Edges,
    message_weights: Float[Tensor, " E"] | None = None,
) -> Float[Tensor, "B V D"]:
    """For each receiver u, the sum over edges r(v, u) of states[v] * relation_vectors[r].

    Messages are made once per distinct (sender, relation), then summed per receiver. Weights on
    them are the same for every query.
    """
    if len(edges.message) == 0:
        return torch.zeros_like(states)
    batch_size, num_entities, width = states.shape
    senders = states.transpose(0, 1).index_select(0, edges.message_sender)
    relations = relation_vectors.transpose(0, 1).index_select(0, edges.message_relation)
    messages = (senders * relations).flatten(1)
    if message_weights is None:
        sums = embedding_bag(
            edges.message, messages, edges.offsets, mode="sum", include_last_offset=True
        )
    else:
        sums = _WeightedSums.apply(messages, message_weights, edges)
    return sums.view(num_entities, batch_size, width).transpose(0, 1)


class _WeightedSums(torch.autograd.Function):
    """For each receiver, the sum of its messages by weight; no tensor of E times D is made.

    Differentiable by hand: torch sorts all edges anew to do it, which takes many times as long.
    """

    CHUNK = 2**14  # edges whose messages fit into the cache together

    @staticmethod
    def forward(
        ctx: Any, messages: Float[Tensor, "M D"], weights: Float[Tensor, " E"], edges: Edges
    ) -> Float[Tensor, "V D"]:
        ctx.save_for_backward(messages, weights)
        ctx.edges = edges
        return _sum_rows(messages, edges.message, edges.offsets, weights)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, gradient: Float[Tensor, "V D"]
    ) -> tuple[Float[Tensor, "M D"], Float[Tensor, " E"], None]:
        messages, weights = ctx.saved_tensors
        edges: Edges = ctx.edges
        of_messages = _sum_rows(
            gradient, edges.receiver, edges.message_offsets, weights[edges.by_message]
        )
        receiver = torch.repeat_interleave(edges.offsets.diff())
        of_weights = torch.empty_like(weights)
        for first in range(0, len(weights), _WeightedSums.CHUNK):
            at = slice(first, first + _WeightedSums.CHUNK)
            at_receiver = gradient.index_select(0, receiver[at])
            message = messages.index_select(0, edges.message[at])
            of_weights[at] = (at_receiver * message).sum(-1)
        return of_messages, of_weights, None


def _sum_rows(
    rows: Float[Tensor, "G D"],
    chosen: Int[Tensor, " E"],
    offsets: Int[Tensor, " S"],
    weights: Float[Tensor, " E"],
) -> Float[Tensor, "S-1 D"]:
    """Returns the weighted sum of the chosen rows, group by group."""
    return embedding_bag(
        chosen, rows, offsets, mode="sum", include_last_offset=True, per_sample_weights=weights
    )


# ---- attention -----------------------------------------------------------------------------------


def gather_attended(
    query_key_states: Float[Tensor, "B V D"],
    value_states: Float[Tensor, "B V D"],
    weights: AttendWeights,
    num_heads: int,
    attended: Float[Tensor, "B V H"] | None = None,
) -> Float[Tensor, "B V D"]:
    """What every entity gathers (eq. 8 to 10), each attended entity counting by its weight.

    For entity u and each head, with a_w the weights, 1 if not given:
        [V * v_u + sum_w a_w kappa(q_u, k_w) v_w] / [V + sum_w a_w kappa(q_u, k_w)]
    """
    q, k = queries_and_keys(query_key_states, weights, num_heads)
    v = split_heads(value_states, num_heads)
    counted = None if attended is None else attended.transpose(1, 2)[..., None]
    if weights.similarity == "linear":
        gathered = linear_attention(q, k, v, counted)
    elif weights.similarity == "exponential":
        gathered = dense_attention(q, k, v, counted)
    else:
        gathered = feature_attention(_features(q, weights), _features(k, weights), v, counted)
    return gathered.transpose(1, 2).flatten(2)


def queries_and_keys(
    query_key_states: Float[Tensor, "B V D"], weights: AttendWeights, num_heads: int
) -> tuple[Float[Tensor, "B H V C"], Float[Tensor, "B H V C"]]:
    """q and k: two linear maps, split into heads, each of unit length."""
    (wq, wk), (bq, bk) = weights.matrices[:2], weights.vectors[:2]
    q = normalize(split_heads(affine(query_key_states, wq, bq), num_heads), dim=-1)
    k = normalize(split_heads(affine(query_key_states, wk, bk), num_heads), dim=-1)
    return q, k


def kappa(
    q: Float[Tensor, "B H U C"], k: Float[Tensor, "B H V C"], weights: AttendWeights
) -> Float[Tensor, "B H U V"]:
    """The similarity of every query vector with every key: the dense form of each choice."""
    if weights.similarity == "linear":
        return 1 + q @ k.mT
    if weights.similarity == "exponential":
        return torch.exp(q @ k.mT)
    return _features(q, weights) @ _features(k, weights).mT


def split_heads(states: Float[Tensor, "B V D"], num_heads: int) -> Float[Tensor, "B H V C"]:
    """Gives each head its columns."""
    return states.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def linear_attention(
    q: Float[Tensor, "B H V C"],
    k: Float[Tensor, "B H V C"],
    v: Float[Tensor, "B H V C"],
    attended: Float[Tensor, "B H V 1"] | None = None,
) -> Float[Tensor, "B H V C"]:
    """Similarity 1 + q.k (eq. 10), linear in V: q (k^T v) needs no V x V matrix."""
    counted, keys = _weighed(v, attended), _weighed(k, attended)
    count = v.shape[-2] if attended is None else attended.sum(-2, keepdim=True)
    total = counted.sum(-2, keepdim=True) + q @ (k.mT @ counted)
    return _join_self(v, total, count + _row_dot(q, keys.sum(-2, keepdim=True)))


def feature_attention(
    q: Float[Tensor, "B H V F"],
    k: Float[Tensor, "B H V F"],
    v: Float[Tensor, "B H V C"],
    attended: Float[Tensor, "B H V 1"] | None = None,
) -> Float[Tensor, "B H V C"]:
    """Similarity q.k of non-negative features, linear in V."""
    counted, keys = _weighed(v, attended), _weighed(k, attended)
    return _join_self(v, q @ (k.mT @ counted), _row_dot(q, keys.sum(-2, keepdim=True)))


def dense_attention(
    q: Float[Tensor, "B H V C"],
    k: Float[Tensor, "B H V C"],
    v: Float[Tensor, "B H V C"],
    attended: Float[Tensor, "B H V 1"] | None = None,
) -> Float[Tensor, "B H V C"]:
    """Similarity exp(q.k), quadratic in V."""
    similarity = torch.exp(q @ k.mT)
    if attended is not None:
        similarity = similarity * attended.mT
    return _join_self(v, similarity @ v, similarity.sum(-1, keepdim=True))


def positive_features(
    unit: Float[Tensor, "B H V C"], directions: Float[Tensor, "H C F"]
) -> Float[Tensor, "B H V F"]:
    """Positive random features: their inner product estimates exp(q.k) without bias."""
    exponent = unit @ directions.to(unit.dtype) - 0.5 * unit.square().sum(-1, keepdim=True)
    return torch.exp(exponent) / math.sqrt(directions.shape[-1])


def _features(
    unit: Float[Tensor, "B H V C"], weights: AttendWeights
) -> Float[Tensor, "B H V F"]:
    assert weights.features is not None
    return positive_features(unit, weights.features)


def _weighed(
    rows: Float[Tensor, "B H V F"], weights: Float[Tensor, "B H V 1"] | None
) -> Float[Tensor, "B H V F"]:
    return rows if weights is None else weights * rows


def _row_dot(
    rows: Float[Tensor, "B H V F"], vector: Float[Tensor, "B H 1 F"]
) -> Float[Tensor, "B H V 1"]:
    """Not a matmul: for one query and one head that is another routine, with other rounding."""
    return (rows * vector).sum(-1, keepdim=True)


def _join_self(
    v: Float[Tensor, "B H V C"],
    total: Float[Tensor, "B H V C"],
    attention_mass: Float[Tensor, "B H V 1"],
) -> Float[Tensor, "B H V C"]:
    """An entity keeps its own value with weight V beside what it attends to (eq. 10)."""
    num_entities = v.shape[-2]
    return (num_entities * v + total) / (num_entities + attention_mass)
