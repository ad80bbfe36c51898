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
        self.num_relations = num_relations
        self.project = nn.Linear(config.hidden_dim, num_relations * config.hidden_dim)

    def forward(self, query_relation: Float[Tensor, "B D"]) -> Float[Tensor, "B R D"]:
        """Returns a vector for every relation of the graph."""
        return self.project(query_relation).unflatten(-1, (self.num_relations, -1))


def _linear(layers: nn.ModuleList) -> list[nn.Linear]:
    return [layer for layer in layers if isinstance(layer, nn.Linear)]
