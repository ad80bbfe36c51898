"""AttentionRows: how much an answer attends to each entity, and what each did for it."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class AttentionRows:
    """Attention to every entity w in every layer and head, and its influence on an answer u.

    ``lift`` is attention over even attention in the answer's row: kappa(q_u, k_w) over its mean.
    ``influence`` is, to first order, the log-odds that the answer loses when no entity attends to w
    any longer. All rows count: what w gives to competitors as much as to the answer is no reason.
    """

    lift: Float[Tensor, "L H V"]
    influence: Float[Tensor, "L H V"]

    def most_influential(self, count: int, besides: int) -> list[int]:
        """Returns the entities with the largest total influence, leaving out those that oppose."""
        return largest(self.influence.sum((0, 1)), count, besides=besides, floor=0.0)

    def spread(self, entities: Int[Tensor, " n"], num_entities: int) -> "AttentionRows":
        """Returns rows of a whole graph, zero for all that a query does not see.

        Args:
            entities: what it sees, by their ids in the graph.
            num_entities: how many the graph has.
        """
        shape = (*self.lift.shape[:2], num_entities)
        lift, influence = self.lift.new_zeros(shape), self.influence.new_zeros(shape)
        lift[:, :, entities], influence[:, :, entities] = self.lift, self.influence
        return AttentionRows(lift=lift, influence=influence)

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
