"""Attention in obvious torch (eq. 8 to 10): one form for every similarity.

    gathered_u = [V v_u + sum_w a_w kappa(q_u, k_w) v_w] / [V + sum_w a_w kappa(q_u, k_w)]

An entity u keeps its own value V times beside what it attends to; a_w weighs each attended entity.
A new similarity is an entry of ``SIMILARITIES`` and a name in ``_operands.Similarity``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear, normalize

from knowformer.kernels._operands import AttendWeights, Similarity

Heads = Float[Tensor, "B H V C"]
Features = Float[Tensor, "B H V F"]
Attended = Float[Tensor, "B H V 1"]
Directions = Float[Tensor, "H C F"]


@dataclass(frozen=True)
class SimilarityForm:
    """One choice of kappa, as V x V numbers and as the sums that attention needs of them."""

    kappa: Callable[[Tensor, Tensor, Tensor | None], Tensor]
    """From q (B H U C), k (B H V C) and random directions: every similarity (B H U V)."""
    sums: Callable[[Tensor, Tensor, Tensor, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]
    """From q, k, v, a and random directions: sum_w a_w kappa v_w (B H V C) and sum_w a_w kappa."""


def gather_attended(
    query_key_states: Float[Tensor, "B V D"],
    value_states: Float[Tensor, "B V D"],
    weights: AttendWeights,
    num_heads: int,
    attended: Float[Tensor, "B V H"] | None = None,
) -> Float[Tensor, "B V D"]:
    """Returns what every entity gathers; without weights every attended entity counts once."""
    q, k = queries_and_keys(query_key_states, weights, num_heads)
    counted = None if attended is None else attended.transpose(1, 2)[..., None]
    v = split_heads(value_states, num_heads)
    gathered = attention(q, k, v, weights.similarity, counted, weights.features)
    return gathered.transpose(1, 2).flatten(2)


def attention(
    q: Heads,
    k: Heads,
    v: Heads,
    similarity: Similarity,
    attended: Attended | None = None,
    directions: Directions | None = None,
) -> Heads:
    """Returns what every entity gathers, head by head."""
    total, attention_mass = SIMILARITIES[similarity].sums(q, k, v, attended, directions)
    num_entities = v.shape[-2]
    return (num_entities * v + total) / (num_entities + attention_mass)


def queries_and_keys(
    query_key_states: Float[Tensor, "B V D"], weights: AttendWeights, num_heads: int
) -> tuple[Heads, Heads]:
    """Returns q and k: two linear maps, split into heads, each of unit length."""
    (wq, wk), (bq, bk) = weights.matrices[:2], weights.vectors[:2]
    q = normalize(split_heads(affine(query_key_states, wq, bq), num_heads), dim=-1)
    k = normalize(split_heads(affine(query_key_states, wk, bk), num_heads), dim=-1)
    return q, k


def kappa(
    q: Float[Tensor, "B H U C"], k: Heads, weights: AttendWeights
) -> Float[Tensor, "B H U V"]:
    """Returns the similarity of every query vector with every key."""
    return SIMILARITIES[weights.similarity].kappa(q, k, weights.features)


def affine(
    states: Float[Tensor, "*N D"], weight: Float[Tensor, "D D"], bias: Float[Tensor, " D"]
) -> Float[Tensor, "*N D"]:
    """A linear map, (in x out), and its bias."""
    return linear(states, weight.t(), bias)


def split_heads(states: Float[Tensor, "B V D"], num_heads: int) -> Heads:
    """Gives each head its columns."""
    return states.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def linear_sums(
    q: Heads, k: Heads, v: Heads, attended: Attended | None, directions: Directions | None = None
) -> tuple[Heads, Attended]:
    """Similarity 1 + q.k (eq. 10), linear in V: q (k^T v) needs no V x V matrix."""
    del directions
    counted = _counted(v, attended)
    total = counted.sum(-2, keepdim=True) + q @ (k.mT @ counted)
    num_attended = v.shape[-2] if attended is None else attended.sum(-2, keepdim=True)
    mass = num_attended + _row_dot(q, _counted(k, attended).sum(-2, keepdim=True))
    return total, mass


def dense_sums(
    q: Heads, k: Heads, v: Heads, attended: Attended | None, directions: Directions | None = None
) -> tuple[Heads, Attended]:
    """Similarity exp(q.k), quadratic in V."""
    del directions
    similarity = torch.exp(q @ k.mT)
    if attended is not None:
        similarity = similarity * attended.mT
    return similarity @ v, similarity.sum(-1, keepdim=True)


def feature_sums(
    q: Heads, k: Heads, v: Heads, attended: Attended | None, directions: Directions | None
) -> tuple[Heads, Attended]:
    """Similarity of positive random features, linear in V."""
    q, k = positive_features(q, directions), positive_features(k, directions)
    mass = _row_dot(q, _counted(k, attended).sum(-2, keepdim=True))
    return q @ (k.mT @ _counted(v, attended)), mass


def positive_features(unit: Heads, directions: Directions | None) -> Features:
    """Positive random features: their inner product estimates exp(q.k) without bias."""
    assert directions is not None
    exponent = unit @ directions.to(unit.dtype) - 0.5 * unit.square().sum(-1, keepdim=True)
    return torch.exp(exponent) / math.sqrt(directions.shape[-1])


def _counted(rows: Features, attended: Attended | None) -> Features:
    """Each row as often as it counts. A product with ones would change how sums are rounded."""
    return rows if attended is None else attended * rows


def _row_dot(rows: Features, vector: Float[Tensor, "B H 1 F"]) -> Attended:
    """Not a matmul: for one query and one head that is another routine, with other rounding."""
    return (rows * vector).sum(-1, keepdim=True)


def _feature_kappa(
    q: Float[Tensor, "B H U C"], k: Heads, directions: Directions | None
) -> Float[Tensor, "B H U V"]:
    return positive_features(q, directions) @ positive_features(k, directions).mT


SIMILARITIES: dict[Similarity, SimilarityForm] = {
    "linear": SimilarityForm(lambda q, k, _: 1 + q @ k.mT, linear_sums),
    "exponential": SimilarityForm(lambda q, k, _: torch.exp(q @ k.mT), dense_sums),
    "random_features": SimilarityForm(_feature_kappa, feature_sums),
}
