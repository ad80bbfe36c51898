"""Obvious torch: defines what is correct, runs in float32 and float64.

Everything is a function of one query at a time: no sum crosses the batch, so a query's result does
not depend on its batch mates.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import embedding_bag, layer_norm, linear

from knowformer.kernels._operands import Edges, HopWeights


class ReferenceBackend:
    """The backend that the others are measured against."""

    def hop(
        self,
        states: Float[Tensor, "B V D"],
        relation_vectors: Float[Tensor, "B R D"],
        edges: Edges,
        weights: HopWeights,
    ) -> Float[Tensor, "B V D"]:
        """See ``Backend.hop``."""
        update = weights.self_weight * states + sum_messages(states, relation_vectors, edges)
        for number, (weight, bias) in enumerate(weights.linear):
            update = linear(torch.relu(update) if number else update, weight, bias)
        if weights.norm is None:
            return update
        return states + layer_norm(update, update.shape[-1:], *weights.norm)

    def linear_attention(
        self, q: Float[Tensor, "B H V C"], k: Float[Tensor, "B H V C"], v: Float[Tensor, "B H V C"]
    ) -> Float[Tensor, "B H V C"]:
        """See ``Backend.linear_attention``: q (k^T v) needs no V x V matrix."""
        num_entities = v.shape[-2]
        total = v.sum(-2, keepdim=True) + q @ (k.mT @ v)
        attention_mass = num_entities + _row_dot(q, k.sum(-2, keepdim=True))
        return _join_self(v, total, attention_mass)

    def feature_attention(
        self, q: Float[Tensor, "B H V F"], k: Float[Tensor, "B H V F"], v: Float[Tensor, "B H V C"]
    ) -> Float[Tensor, "B H V C"]:
        """See ``Backend.feature_attention``."""
        return _join_self(v, q @ (k.mT @ v), _row_dot(q, k.sum(-2, keepdim=True)))

    def dense_attention(
        self, q: Float[Tensor, "B H V C"], k: Float[Tensor, "B H V C"], v: Float[Tensor, "B H V C"]
    ) -> Float[Tensor, "B H V C"]:
        """See ``Backend.dense_attention``."""
        similarity = torch.exp(q @ k.mT)
        return _join_self(v, similarity @ v, similarity.sum(-1, keepdim=True))


def sum_messages(
    states: Float[Tensor, "B V D"], relation_vectors: Float[Tensor, "B R D"], edges: Edges
) -> Float[Tensor, "B V D"]:
    """For each receiver u, the sum over edges r(v, u) of states[v] * relation_vectors[r].

    Messages are made once per distinct (sender, relation), then summed per receiver.
    """
    batch_size, num_entities, width = states.shape
    senders = states.transpose(0, 1).index_select(0, edges.message_sender)
    relations = relation_vectors.transpose(0, 1).index_select(0, edges.message_relation)
    messages = (senders * relations).flatten(1)
    if len(edges.message) == 0:
        return torch.zeros_like(states)
    sums = embedding_bag(
        edges.message, messages, edges.offsets, mode="sum", include_last_offset=True
    )
    return sums.view(num_entities, batch_size, width).transpose(0, 1)


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
