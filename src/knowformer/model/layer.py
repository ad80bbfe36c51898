"""One transformer layer: two streams, attention, feed-forward, norms (algorithm 1, eq. 11)."""

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import AttendWeights, Backend, Dropout, Edges
from knowformer.model.config import ModelConfig
from knowformer.model.streams import QueryKeyStream, ValueStream
from knowformer.seeding import generator


class RelationVectorsOfLayer(NamedTuple):
    """A layer's relation vectors: one set for the query stream, one per hop of the value stream."""

    query_key: Float[Tensor, "B R D"] | None
    value: tuple[Float[Tensor, "B R D"], ...]


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
        vectors: RelationVectorsOfLayer,
        heads: Int[Tensor, " B"],
        relations: Int[Tensor, " B"],
        edges: Edges,
        *,
        identity_noise: Float[Tensor, "V N"],
        dropout_generator: np.random.Generator | None,
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Returns the entity states after this layer; states of None are zero."""
        x = entity_states
        values = self.value_stream(x, vectors.value, heads, edges, backend=backend)
        zeros_or_x = torch.zeros_like(values) if x is None else x
        dropout = self._dropout(values, dropout_generator)
        if self.to_query_key is None:
            return backend.finish_layer(zeros_or_x, values, self.weights(), dropout=dropout)
        query_key_states = zeros_or_x
        if self.query_key_stream is not None:
            query_key_states = self._query_key_states(
                x, vectors.query_key, relations, edges, identity_noise, backend
            )
        return backend.attend(
            zeros_or_x,
            query_key_states,
            values,
            self.weights(),
            num_heads=self.config.num_heads,
            dropout=dropout,
        )

    def _query_key_states(
        self,
        entity_states: Float[Tensor, "B V D"] | None,
        vectors: Float[Tensor, "B R D"] | None,
        relations: Int[Tensor, " B"],
        edges: Edges,
        identity_noise: Float[Tensor, "V N"],
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Runs the query stream; in the first layer once per relation, which is all it sees."""
        assert self.query_key_stream is not None
        run = partial(
            self.query_key_stream, edges=edges, identity_noise=identity_noise, backend=backend
        )
        if entity_states is not None:
            return run(entity_states, vectors, num_queries=len(relations))
        distinct: Tensor
        row_of_query: Tensor
        distinct, row_of_query = torch.unique(relations, return_inverse=True)
        if vectors is not None:
            a_query_of_row = torch.empty_like(distinct)
            a_query_of_row[row_of_query] = torch.arange(len(relations))
            vectors = vectors.index_select(0, a_query_of_row)
        shared = run(None, vectors, num_queries=len(distinct))
        return shared.index_select(0, row_of_query)

    def relation_vectors(self, query_relation: Float[Tensor, "B D"]) -> RelationVectorsOfLayer:
        """Returns what each relation does to messages, for every hop of this layer (eq. 5)."""
        stream = self.query_key_stream
        shared = stream.relation_vectors if stream is not None else None
        return RelationVectorsOfLayer(
            query_key=shared(query_relation) if shared is not None else None,
            value=tuple(make(query_relation) for make in self.value_stream.relation_vectors),
        )

    def weights(self) -> AttendWeights:
        """Returns the weights of attention and feed-forward in the form that kernels take."""
        width = self.config.hidden_dim
        empty = (self.expand.weight[:0], self.expand.bias[:0])
        to_both = self.to_query_key
        query = empty if to_both is None else (to_both.weight[:width], to_both.bias[:width])
        key = empty if to_both is None else (to_both.weight[width:], to_both.bias[width:])
        return AttendWeights(
            query=query,
            key=key,
            attention_norm=(self.attention_norm.weight, self.attention_norm.bias),
            expand=(self.expand.weight, self.expand.bias),
            contract=(self.contract.weight, self.contract.bias),
            output_norm=(self.output_norm.weight, self.output_norm.bias),
            similarity=self.config.similarity,
            features=self.features,
        )

    def _dropout(self, like: Tensor, random: np.random.Generator | None) -> Dropout | None:
        """Draws which activations stay; a byte each, so the rate is a multiple of 1/256."""
        threshold = round(self.config.dropout * 256)
        if random is None or threshold == 0:
            return None
        drawn = np.frombuffer(bytearray(random.bytes(like.numel())), dtype=np.uint8)
        return Dropout(torch.from_numpy(drawn).view(like.shape), threshold)


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
