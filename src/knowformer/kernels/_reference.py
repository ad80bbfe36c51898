"""Obvious torch: defines what is correct, runs in float32 and float64.

Everything is a function of one query at a time: no sum crosses the batch, so a query's result does
not depend on its batch mates.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag, layer_norm, linear, normalize

from knowformer.kernels._operands import (
    AttendWeights,
    Dropout,
    Edges,
    HopWeights,
    InputWeights,
    ScoreWeights,
    Similarity,
)


class ReferenceBackend:
    """The backend that the others are measured against."""

    def is_batch_invariant(self, *, width: int, num_heads: int, similarity: Similarity) -> bool:
        """Never: BLAS picks its routine by the size of the whole batch."""
        del width, num_heads, similarity
        return False

    def hop(
        self,
        states: Float[Tensor, "B V D"],
        relation_vectors: Float[Tensor, "B R D"],
        edges: Edges,
        weights: HopWeights,
    ) -> Float[Tensor, "B V D"]:
        """See ``Backend.hop``."""
        rows, maps = weights.rows, weights.maps
        update = rows[0] * states + sum_messages(states, relation_vectors, edges)
        for number, weight in enumerate(maps):
            update = affine(torch.relu(update) if number else update, weight, rows[1 + number])
        if not weights.norm:
            return update
        return states + layer_norm(update, update.shape[-1:], rows[-2], rows[-1])

    def stream_input(
        self,
        states: Float[Tensor, "B V D"] | None,
        extra: Float[Tensor, "V_or_1 D"],
        weights: InputWeights,
        *,
        heads: Int[Tensor, " B"] | None,
        num_queries: int,
        num_entities: int,
    ) -> Float[Tensor, "B V D"]:
        """See ``Backend.stream_input``."""
        hidden = extra.expand(num_queries, num_entities, -1)
        if states is not None:
            hidden = hidden + states @ weights.maps[0]
        if heads is not None and len(weights.rows) == 2:
            is_head = torch.arange(num_entities) == heads[:, None]
            hidden = hidden + is_head[..., None] * weights.rows[1]
        return affine(torch.relu(hidden), weights.maps[1], weights.rows[0])

    def spread(
        self,
        background: Sequence[Float[Tensor, "1 V D"]],
        extra: Float[Tensor, "1 D"],
        start: InputWeights,
        hops: Sequence[HopWeights],
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        edges: Edges,
        *,
        heads: Int[Tensor, " B"],
    ) -> Float[Tensor, "B V D"]:
        """See ``Backend.spread``: everything is computed."""
        del background
        states = self.stream_input(
            None, extra, start,
            heads=heads, num_queries=len(heads), num_entities=edges.num_entities,
        )  # fmt: skip
        for weights, vectors in zip(hops, relation_vectors, strict=True):
            states = self.hop(states, vectors.expand(len(heads), -1, -1), edges, weights)
        return states

    def attend(
        self,
        states: Float[Tensor, "B V D"],
        query_key_states: Float[Tensor, "B V D"],
        value_states: Float[Tensor, "B V D"],
        weights: AttendWeights,
        *,
        num_heads: int,
        dropout: Dropout | None,
    ) -> Float[Tensor, "B V D"]:
        """See ``Backend.attend``."""
        (wq, wk), (bq, bk) = weights.maps[:2], weights.rows[:2]
        q = normalize(split_heads(affine(query_key_states, wq, bq), num_heads), dim=-1)
        k = normalize(split_heads(affine(query_key_states, wk, bk), num_heads), dim=-1)
        v = split_heads(value_states, num_heads)
        if weights.similarity == "linear":
            gathered = linear_attention(q, k, v)
        elif weights.similarity == "exponential":
            gathered = dense_attention(q, k, v)
        else:
            assert weights.features is not None
            q, k = positive_features(q, weights.features), positive_features(k, weights.features)
            gathered = feature_attention(q, k, v)
        return self.finish_layer(
            states, gathered.transpose(1, 2).flatten(2), weights, dropout=dropout
        )

    def finish_layer(
        self,
        states: Float[Tensor, "B V D"],
        gathered: Float[Tensor, "B V D"],
        weights: AttendWeights,
        *,
        dropout: Dropout | None,
    ) -> Float[Tensor, "B V D"]:
        """Residual, norm, feed-forward, residual, norm (eq. 11)."""
        shape = states.shape[-1:]
        gamma1, beta1, b1, b2, gamma2, beta2 = weights.rows[-6:]
        expand, contract = weights.maps[-2:]
        a = layer_norm(states + gathered, shape, gamma1, beta1)
        hidden = torch.relu(affine(a, expand, b1))
        if dropout is not None:
            hidden = hidden * (dropout.random_bytes >= dropout.threshold) * dropout.scale
        return layer_norm(a + affine(hidden, contract, b2), shape, gamma2, beta2)

    def score(self, states: Float[Tensor, "B V D"], weights: ScoreWeights) -> Float[Tensor, "B V"]:
        """See ``Backend.score``."""
        hidden = torch.relu(affine(states, weights.maps[0], weights.rows[0]))
        return linear(hidden, weights.rows[1:], weights.bias).squeeze(-1)


def affine(
    states: Float[Tensor, "B V D"], weight: Float[Tensor, "D D"], bias: Float[Tensor, " D"]
) -> Float[Tensor, "B V D"]:
    """A linear map, (in x out), and its bias."""
    return linear(states, weight.t(), bias)


def sum_messages(
    states: Float[Tensor, "B V D"], relation_vectors: Float[Tensor, "B R D"], edges: Edges
) -> Float[Tensor, "B V D"]:
    """For each receiver u, the sum over edges r(v, u) of states[v] * relation_vectors[r].

    Messages are made once per distinct (sender, relation), then summed per receiver.
    """
    if len(edges.message) == 0:
        return torch.zeros_like(states)
    batch_size, num_entities, width = states.shape
    senders = states.transpose(0, 1).index_select(0, edges.message_sender)
    relations = relation_vectors.transpose(0, 1).index_select(0, edges.message_relation)
    messages = (senders * relations).flatten(1)
    sums = embedding_bag(
        edges.message, messages, edges.offsets, mode="sum", include_last_offset=True
    )
    return sums.view(num_entities, batch_size, width).transpose(0, 1)


def split_heads(states: Float[Tensor, "B V D"], num_heads: int) -> Float[Tensor, "B H V C"]:
    """Gives each head its share of the width."""
    return states.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def linear_attention(
    q: Float[Tensor, "B H V C"], k: Float[Tensor, "B H V C"], v: Float[Tensor, "B H V C"]
) -> Float[Tensor, "B H V C"]:
    """Similarity 1 + q.k (eq. 10), linear in V: q (k^T v) needs no V x V matrix."""
    total = v.sum(-2, keepdim=True) + q @ (k.mT @ v)
    attention_mass = v.shape[-2] + _row_dot(q, k.sum(-2, keepdim=True))
    return _join_self(v, total, attention_mass)


def feature_attention(
    q: Float[Tensor, "B H V F"], k: Float[Tensor, "B H V F"], v: Float[Tensor, "B H V C"]
) -> Float[Tensor, "B H V C"]:
    """Similarity q.k of non-negative features, linear in V."""
    return _join_self(v, q @ (k.mT @ v), _row_dot(q, k.sum(-2, keepdim=True)))


def dense_attention(
    q: Float[Tensor, "B H V C"], k: Float[Tensor, "B H V C"], v: Float[Tensor, "B H V C"]
) -> Float[Tensor, "B H V C"]:
    """Similarity exp(q.k), quadratic in V."""
    similarity = torch.exp(q @ k.mT)
    return _join_self(v, similarity @ v, similarity.sum(-1, keepdim=True))


def positive_features(
    unit: Float[Tensor, "B H V C"], directions: Float[Tensor, "H C F"]
) -> Float[Tensor, "B H V F"]:
    """Positive random features: their inner product estimates exp(q.k) without bias."""
    exponent = unit @ directions.to(unit.dtype) - 0.5 * unit.square().sum(-1, keepdim=True)
    return torch.exp(exponent) / math.sqrt(directions.shape[-1])


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
