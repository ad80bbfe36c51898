"""What one entity attends to: one row of the attention, never a V x V matrix (eq. 8 to 10).

Row u gathers [V * v_u + sum_w kappa(q_u, k_w) v_w] / [V + sum_w kappa(q_u, k_w)], which costs as
much as scoring one entity.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear, normalize

from knowformer.kernels.interface import AttendWeights


def row_similarity(
    query_key_states: Float[Tensor, "1 V D"], entity: int, weights: AttendWeights, num_heads: int
) -> Float[Tensor, "H V"]:
    """Returns kappa(q_u, k_w) of one entity u with every entity w, per head."""
    states = query_key_states[0]
    own = states[entity : entity + 1]
    q = normalize(_split_heads(linear(own, *weights.query), num_heads), dim=-1)
    k = normalize(_split_heads(linear(states, *weights.key), num_heads), dim=-1)
    if weights.similarity == "linear":
        return 1 + (k @ q.mT).squeeze(-1)
    if weights.similarity == "exponential":
        return torch.exp((k @ q.mT).squeeze(-1))
    assert weights.features is not None
    directions = weights.features.to(q.dtype)
    return (_features(k, directions) @ _features(q, directions).mT).squeeze(-1)


def gather_row(
    similarity: Float[Tensor, "H V"], value_states: Float[Tensor, "1 V D"], entity: int
) -> Float[Tensor, "1 1 D"]:
    """Returns what an entity gathers: its own value with weight V, and all values by similarity."""
    num_heads, num_entities = similarity.shape
    v = _split_heads(value_states[0], num_heads)
    total = num_entities * v[:, entity] + (similarity[:, None] @ v).squeeze(1)
    attention_mass = num_entities + similarity.sum(1, keepdim=True)
    return (total / attention_mass).reshape(1, 1, -1)


@dataclass(frozen=True)
class AttentionRows:
    """What an answer attends to in every layer and head, and what that did for it.

    ``lift`` is attention over even attention: kappa(q_u, k_w) over its mean. ``influence`` is the
    attention weight of w times what w's value says for the answer beyond what the answer gathers
    anyway: to first order, the log-odds lost when the answer no longer attends to w.
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


def _features(
    unit: Float[Tensor, "H N C"], directions: Float[Tensor, "H C F"]
) -> Float[Tensor, "H N F"]:
    """Positive random features, whose inner product estimates exp(q.k)."""
    exponent = unit @ directions - 0.5 * unit.square().sum(-1, keepdim=True)
    return torch.exp(exponent) / math.sqrt(directions.shape[-1])
