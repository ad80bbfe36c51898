"""One transformer layer: two streams, attention, feed-forward, norms (algorithm 1, eq. 11)."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import AttendWeights, Backend, Dropout, Edges
from knowformer.model.config import ModelConfig
from knowformer.model.streams import QueryKeyStream, ValueStream, run_stream
from knowformer.model.weights import LayerWeights, RelationVectorsOfLayer
from knowformer.seeding import generator


class KnowFormerLayer(nn.Module):
    """entity_states -> entity_states."""

    features: Tensor | None

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        width = config.hidden_dim
        self.config = config
        # Only what is used exists: every parameter of a model receives a gradient.
        with_query_stream = config.attention and config.query_stream
        self.query_key_stream = QueryKeyStream(config, num_relations) if with_query_stream else None
        self.value_stream = ValueStream(config, num_relations)
        self.to_query_key = nn.Linear(width, 2 * width) if config.attention else None
        self.attention_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, width)
        self.contract = nn.Linear(width, width)
        self.output_norm = nn.LayerNorm(width)
        self.register_buffer("features", _random_directions(config), persistent=False)

    def forward(
        self,
        entity_states: Float[Tensor, "B V D"] | None,
        weights: LayerWeights,
        vectors: RelationVectorsOfLayer,
        heads: Int[Tensor, " B"],
        edges: Edges,
        *,
        query_key_states: Float[Tensor, "B V D"] | None,
        value_states: Float[Tensor, "B V D"] | None,
        dropout_generator: np.random.Generator | None,
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Returns the entity states after this layer.

        Args:
            entity_states: those before it; None if they are zero.
            weights: what ``weights`` returns.
            vectors: what ``relation_vectors`` returns.
            heads: the queries' heads.
            edges: the graph.
            query_key_states: the query stream's, if they are there already.
            value_states: the value stream's, if they are there already.
            dropout_generator: dropout acts only when given one.
            backend: the kernels.
        """
        size = len(heads)
        values = value_states
        if values is None:
            values = run_stream(
                entity_states, weights.value, vectors.value, edges,
                heads=heads, num_queries=size, backend=backend,
            )  # fmt: skip
        dropout = self._dropout(values, dropout_generator)
        states = torch.zeros_like(values) if entity_states is None else entity_states
        if not self.config.attention:
            return backend.finish_layer(states, values, weights.attend, dropout=dropout)
        if weights.query_key is None:
            query_key_states = states
        elif query_key_states is None:
            query_key_states = run_stream(
                entity_states, weights.query_key, vectors.query_key, edges,
                heads=None, num_queries=size, backend=backend,
            )  # fmt: skip
        return backend.attend(
            states,
            query_key_states,
            values,
            weights.attend,
            num_heads=self.config.num_heads,
            dropout=dropout,
        )

    def relation_vectors(self, query_relation: Float[Tensor, "B D"]) -> RelationVectorsOfLayer:
        """Returns what each relation does to messages, for every hop of this layer (eq. 5)."""
        stream = self.query_key_stream
        return RelationVectorsOfLayer(
            query_key=() if stream is None else stream.vectors(query_relation),
            value=self.value_stream.vectors(query_relation),
        )

    def weights(self, identity_noise: Float[Tensor, "V N"]) -> LayerWeights:
        """Returns the weights in the form that kernels take, for entities with this noise."""
        stream, to_both, width = self.query_key_stream, self.to_query_key, self.config.hidden_dim
        query_key = None
        if to_both is not None:
            query = to_both.weight[:width], to_both.bias[:width]
            query_key = query, (to_both.weight[width:], to_both.bias[width:])
        attend = AttendWeights.pack(
            query_key,
            (self.attention_norm.weight, self.attention_norm.bias),
            ((self.expand.weight, self.expand.bias), (self.contract.weight, self.contract.bias)),
            (self.output_norm.weight, self.output_norm.bias),
            self.config.similarity,
            self.features,
        )
        noise = identity_noise.to(self.expand.weight.dtype)
        return LayerWeights(
            query_key=None if stream is None else stream.weights(noise),
            value=self.value_stream.weights(),
            attend=attend,
        )

    def _dropout(self, like: Tensor, random: np.random.Generator | None) -> Dropout | None:
        """Draws which activations stay; a byte each, so the rate is a multiple of 1/256."""
        threshold = round(self.config.dropout * 256)
        if random is None or threshold == 0:
            return None
        drawn = random.bit_generator.random_raw(-(-like.numel() // 8)).view(np.uint8)
        return Dropout(torch.from_numpy(drawn)[: like.numel()].view(like.shape), threshold)


def _random_directions(config: ModelConfig) -> Float[Tensor, "H C F"] | None:
    """Directions of the random features: fixed, the same in every model, never stored."""
    if config.similarity != "random_features":
        return None
    shape = (
        config.num_heads,
        config.hidden_dim // config.num_heads,
        config.num_random_features,
    )
    return torch.randn(shape, generator=generator(0, "random_features"))
