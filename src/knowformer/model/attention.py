"""All-pairs attention over entities in linear time (eq. 8 to 10), with three similarities.

All share one form, in which an entity keeps its own value with weight V:

    out_u = [V v_u + sum_w kappa(q_u, k_w) v_w] / [V + sum_w kappa(q_u, k_w)]
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from knowformer.kernels.interface import Backend
from knowformer.model.config import ModelConfig
from knowformer.seeding import generator


class EntityAttention(nn.Module):
    """Every entity attends to every other by how alike they are under the query's relation."""

    features: Tensor | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.similarity = config.similarity
        self.num_heads = config.num_heads
        self.to_query_key = nn.Linear(config.hidden_dim, 2 * config.hidden_dim)
        head_width = config.hidden_dim // config.num_heads
        features = None
        if config.similarity == "random_features":
            # Fixed directions, the same in every model: nothing to store, nothing to learn.
            shape = (config.num_heads, head_width, config.num_random_features)
            features = torch.randn(shape, generator=generator(0, "random_features"))
        self.register_buffer("features", features, persistent=False)

    def forward(
        self,
        query_key_states: Float[Tensor, "B V D"],
        value_states: Float[Tensor, "B V D"],
        *,
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Returns what each entity gathers from all entities."""
        q, k = self.query_key(query_key_states)
        v = self._split_heads(value_states)
        if self.similarity == "linear":
            out = backend.linear_attention(q, k, v)
        elif self.similarity == "exponential":
            out = backend.dense_attention(q, k, v)
        else:
            out = backend.feature_attention(self._positive(q), self._positive(k), v)
        return out.transpose(1, 2).flatten(2)

    def query_key(
        self, query_key_states: Float[Tensor, "B V D"]
    ) -> tuple[Float[Tensor, "B H V C"], Float[Tensor, "B H V C"]]:
        """Returns q and k: unit vectors per head, so that 1 + q.k is never negative."""
        both: Tensor = self.to_query_key(query_key_states)
        q, k = both.chunk(2, -1)
        return normalize(self._split_heads(q), dim=-1), normalize(self._split_heads(k), dim=-1)

    def _split_heads(self, states: Float[Tensor, "B V D"]) -> Float[Tensor, "B H V C"]:
        return states.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _positive(self, unit: Float[Tensor, "B H V C"]) -> Float[Tensor, "B H V F"]:
        """Positive random features: their inner product estimates exp(q.k) without bias."""
        assert self.features is not None
        exponent = unit @ self.features.to(unit.dtype) - 0.5 * unit.square().sum(-1, keepdim=True)
        return torch.exp(exponent) / math.sqrt(self.features.shape[-1])
