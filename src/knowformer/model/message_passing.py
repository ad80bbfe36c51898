"""Weights of one hop: gather neighbours, multiply by relation, sum, update (eq. 5 to 7)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from knowformer.kernels.interface import HopWeights
from knowformer.model.config import ModelConfig


class Hop(nn.Module):
    """Weights of one hop; the work is the backend's."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_dim
        self.self_weight = nn.Parameter(torch.empty(width))
        self.update = nn.ModuleList([nn.Linear(width, width) for _ in range(config.update_layers)])
        self.norm = nn.LayerNorm(width) if config.update_norm else None

    def weights(self) -> HopWeights:
        """Returns the weights in the form that kernels take."""
        norm = self.norm
        return HopWeights.pack(
            self.self_weight,
            [(layer.weight, layer.bias) for layer in _linear(self.update)],
            None if norm is None else (norm.weight, norm.bias),
        )


class RelationProjection(nn.Module):
    """What each relation does to a message, given the query's relation (eq. 5)."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        width = config.hidden_dim
        self.num_relations = num_relations
        self.project = nn.Linear(width, num_relations * width)
        self.common = nn.Linear(width, 2 * width) if config.relation_prior else None

    def forward(
        self, query_relation: Float[Tensor, "B D"], trust: Float[Tensor, "R 1"] | None = None
    ) -> Float[Tensor, "B R D"]:
        """Returns a vector for every relation of the graph."""
        own = self.project(query_relation).unflatten(-1, (self.num_relations, -1))
        if self.common is None or trust is None:
            return own
        return lean_on_common(own, self.common(query_relation).unflatten(-1, (2, -1)), trust)


def lean_on_common(
    own: Float[Tensor, "... R D"], common: Float[Tensor, "... 2 D"], trust: Float[Tensor, "R 1"]
) -> Float[Tensor, "... R D"]:
    """Adds what all relations have in common, and what all inverses have, to what each has."""
    return own * trust + common.repeat_interleave(own.shape[-2] // 2, -2)


def _linear(layers: nn.ModuleList) -> list[nn.Linear]:
    return [layer for layer in layers if isinstance(layer, nn.Linear)]
