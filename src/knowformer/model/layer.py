"""One transformer layer: two streams, attention, feed-forward, norms (algorithm 1, eq. 11)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import Backend, Edges
from knowformer.model.attention import EntityAttention
from knowformer.model.config import ModelConfig
from knowformer.model.streams import QueryKeyStream, ValueStream


class FeedForward(nn.Module):
    """Two linear maps with ReLU and dropout between them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.expand = nn.Linear(config.hidden_dim, config.hidden_dim)
        self.contract = nn.Linear(config.hidden_dim, config.hidden_dim)
        self.dropout = config.dropout

    def forward(
        self, states: Float[Tensor, "B V D"], *, dropout_generator: torch.Generator | None
    ) -> Float[Tensor, "B V D"]:
        """Returns the update of each state; nothing is dropped without a generator."""
        hidden = torch.relu(self.expand(states))
        if dropout_generator is not None and self.dropout:
            keep = 1.0 - self.dropout
            kept = torch.empty_like(hidden).bernoulli_(keep, generator=dropout_generator)
            hidden = hidden * kept / keep
        return self.contract(hidden)


class KnowFormerLayer(nn.Module):
    """entity_states -> entity_states."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        # Only what is used exists: every parameter of a model receives a gradient.
        with_query_stream = config.attention and config.query_stream
        self.query_key_stream = QueryKeyStream(config, num_relations) if with_query_stream else None
        self.value_stream = ValueStream(config, num_relations)
        self.attention = EntityAttention(config) if config.attention else None
        self.feed_forward = FeedForward(config)
        self.attention_norm = nn.LayerNorm(config.hidden_dim)
        self.output_norm = nn.LayerNorm(config.hidden_dim)

    def forward(
        self,
        entity_states: Float[Tensor, "B V D"],
        query_relation: Float[Tensor, "B D"],
        heads: Int[Tensor, " B"],
        edges: Edges,
        *,
        identity_noise: Float[Tensor, "V N"],
        dropout_generator: torch.Generator | None,
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Returns the entity states after this layer."""
        x = entity_states
        out = self.value_stream(x, query_relation, heads, edges, backend=backend)
        if self.attention is not None:
            query_key_states = x
            if self.query_key_stream is not None:
                query_key_states = self.query_key_stream(
                    x, query_relation, edges, identity_noise=identity_noise, backend=backend
                )
            out = self.attention(query_key_states, out, backend=backend)
        a = self.attention_norm(x + out)
        return self.output_norm(a + self.feed_forward(a, dropout_generator=dropout_generator))
