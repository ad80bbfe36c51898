"""Weights of one transformer layer: two streams, attention, feed-forward, norms (eq. 11)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from knowformer.kernels.interface import AttendWeights
from knowformer.model.config import ModelConfig
from knowformer.model.streams import QueryKeyStream, ValueStream
from knowformer.model.weights import LayerWeights
from knowformer.seeding import generator


class KnowFormerLayer(nn.Module):
    """Weights of one layer; ``model.run`` runs it."""

    features: Tensor | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_dim
        self.config = config
        # Only what is used exists: every parameter of a model receives a gradient.
        with_query_stream = config.attention and config.query_stream
        self.query_key_stream = QueryKeyStream(config) if with_query_stream else None
        self.value_stream = ValueStream(config)
        # Centred, queries and keys have no use for a bias.
        both = nn.Linear(width, 2 * width, bias=not config.centred_attention)
        self.to_query_key = both if config.attention else None
        self.attention_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, width)
        self.contract = nn.Linear(width, width)
        self.output_norm = nn.LayerNorm(width)
        self.register_buffer("features", _random_directions(config), persistent=False)

    def pack(self, identity_noise: Float[Tensor, "V noise"]) -> LayerWeights:
        """Returns the weights in the form that kernels take, for entities with this noise."""
        stream, to_both, width = self.query_key_stream, self.to_query_key, self.config.hidden_dim
        query_key = None
        if to_both is not None:
            no_bias = to_both.weight.new_zeros(2 * width)
            bias = no_bias if self.config.centred_attention else to_both.bias
            query_key = (
                (to_both.weight[:width], bias[:width]),
                (to_both.weight[width:], bias[width:]),
            )
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
            query_key=None if stream is None else stream.pack(noise),
            value=self.value_stream.pack(),
            attend=attend,
        )


def _random_directions(config: ModelConfig) -> Float[Tensor, "H C F"] | None:
    """Directions of the random features: fixed, the same in every model, never stored."""
    if config.similarity != "random_features":
        return None
    shape = (
        config.num_heads,
        config.hidden_dim // config.num_heads,
        config.num_random_features,
    )
    return torch.randn(shape, generator=generator(0, "random_features"), device="cpu")
