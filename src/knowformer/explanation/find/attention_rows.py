"""What entities attend to, with a weight on each that is attended to (eq. 8 to 10).

Row u gathers [V * v_u + sum_w kappa(q_u, k_w) v_w] / [V + sum_w kappa(q_u, k_w)]. With the linear
similarity and with random features kappa is a product, so no V x V matrix is made.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from knowformer.kernels.interface import AttendWeights


def row_similarity(
    query_key_states: Float[Tensor, "1 V D"], entity: int, weights: AttendWeights, num_heads: int
) -> Float[Tensor, "H V"]:
    """Returns kappa(q_u, k_w) of one entity u with every entity w, per head."""
    q, k = _queries_and_keys(query_key_states[0], weights, num_heads)
    return _similarity(q[:, entity : entity + 1], k, weights).squeeze(1)


def gather(
    query_key_states: Float[Tensor, "1 V D"],
    value_states: Float[Tensor, "1 V D"],
    attended: Float[Tensor, "H V"],
    weights: AttendWeights,
) -> Float[Tensor, "1 V D"]:
    """Returns what every entity gathers when each attended entity counts by a weight.

    An entity's own value, which counts V times, is not weighed.
    """
    num_heads, num_entities = attended.shape
    q, k = _queries_and_keys(query_key_states[0], weights, num_heads)
    v = _split_heads(value_states[0], num_heads)
    # The masses are a last column of the values: both are sums over the attended.
    counted = attended[..., None] * torch.cat([v, torch.ones_like(v[..., :1])], -1)
    if weights.similarity == "exponential":
        sums = _similarity(q, k, weights) @ counted
    else:
        sums = _features(q, weights) @ (_features(k, weights).mT @ counted)
    gathered = (num_entities * v + sums[..., :-1]) / (num_entities + sums[..., -1:])
    return gathered.transpose(0, 1).flatten(1)[None]


@dataclass(frozen=True)
class AttentionRows:
    """What an answer attends to in every layer and head, and what that did for it.

    ``lift`` is attention over even attention in the answer's row: kappa(q_u, k_w) over its mean.
    ``influence`` is, to first order, the log-odds that the answer loses when no entity attends to w
    any longer. All rows count: what w gives to rivals as much as to the answer is no reason.
    """

    lift: Float[Tensor, "L H V"]
    influence: Float[Tensor, "L H V"]

    def most_influential(self, count: int, besides: int) -> list[int]:
        """Returns the entities with the largest influence in all, those that oppose left out."""
        return largest(self.influence.sum((0, 1)), count, besides=besides, floor=0.0)

    def most_attended(self, count: int, besides: int) -> list[int]:
        """Returns the entities with the largest attention over all layers and heads."""
        return largest(self.lift.mean((0, 1)), count, besides=besides)


def largest(
    values: Float[Tensor, " V"], count: int, *, besides: int, floor: float = -math.inf
) -> list[int]:
    """Returns the entities with the largest values above ``floor``, leaving out ``besides``."""
    order = torch.argsort(values, descending=True, stable=True)
    order = order[(order != besides) & (values[order] > floor)]
    chosen: list[int] = order[:count].tolist()
    return chosen


def _split_heads(rows: Float[Tensor, "N D"], num_heads: int) -> Float[Tensor, "H N C"]:
    return rows.unflatten(-1, (num_heads, -1)).transpose(0, 1)


def _queries_and_keys(
    states: Float[Tensor, "V D"], weights: AttendWeights, num_heads: int
) -> tuple[Float[Tensor, "H V C"], Float[Tensor, "H V C"]]:
    (wq, wk), (bq, bk) = weights.maps[:2], weights.rows[:2]
    q, k = (_split_heads(states @ w + b, num_heads) for w, b in ((wq, bq), (wk, bk)))
    return normalize(q, dim=-1), normalize(k, dim=-1)


def _similarity(
    q: Float[Tensor, "H N C"], k: Float[Tensor, "H V C"], weights: AttendWeights
) -> Float[Tensor, "H N V"]:
    if weights.similarity == "exponential":
        return torch.exp(q @ k.mT)
    return _features(q, weights) @ _features(k, weights).mT


def _features(unit: Float[Tensor, "H N C"], weights: AttendWeights) -> Float[Tensor, "H N F"]:
    """Features whose inner product is 1 + q.k, or estimates exp(q.k)."""
    if weights.similarity == "linear":
        return torch.cat([torch.ones_like(unit[..., :1]), unit], -1)
    assert weights.features is not None
    directions = weights.features.to(unit.dtype)
    exponent = unit @ directions - 0.5 * unit.square().sum(-1, keepdim=True)
    return torch.exp(exponent) / math.sqrt(directions.shape[-1])
