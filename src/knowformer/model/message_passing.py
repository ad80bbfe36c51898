"""Weights of one hop: gather neighbours, multiply by relation, sum, update (eq. 6 and 7)."""

import torch
from torch import nn

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

    def pack(self) -> HopWeights:
        """Returns the weights in the form that kernels take."""
        linear: list[nn.Linear] = list(self.update)  # pyright: ignore[reportAssignmentType]
        norm = self.norm
        return HopWeights.pack(
            self.self_weight,
            [(layer.weight, layer.bias) for layer in linear],
            None if norm is None else (norm.weight, norm.bias),
        )
