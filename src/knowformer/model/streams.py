"""QueryKeyStream and ValueStream: structure-aware encoders of every entity (eq. 6 and 7).

Both start from MLP([entity_states, something]). The first linear map is taken apart: what the
something adds to the hidden layer is the same for all queries (noise) or for one row (the head).
"""

from jaxtyping import Float
from torch import Tensor, nn

from knowformer.kernels.interface import HopWeights, InputWeights, StreamWeights
from knowformer.model.config import ModelConfig
from knowformer.model.message_passing import Hop


class QueryKeyStream(nn.Module):
    """Context of each entity, told apart by noise."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_dim
        self.first = nn.Linear(width + config.noise_width, width)
        self.second = nn.Linear(width, width)
        self.hops = nn.ModuleList([Hop(config) for _ in range(config.query_key_hops)])

    def noise_input(self, identity_noise: Float[Tensor, "V noise"]) -> Float[Tensor, "V D"]:
        """Returns what the first map makes of each entity's noise, with its bias."""
        width = self.second.in_features
        return nn.functional.linear(identity_noise, self.first.weight[:, width:], self.first.bias)

    def pack(self, identity_noise: Float[Tensor, "V noise"]) -> StreamWeights:
        """Returns the weights in the form that kernels take, for entities with this noise."""
        width, weight = self.second.in_features, self.first.weight
        extra = self.noise_input(identity_noise)
        second = self.second.weight, self.second.bias
        start = InputWeights.pack(extra, weight[:, :width], second, None)
        return StreamWeights(start, _packed(self.hops))


class ValueStream(nn.Module):
    """What each entity is to the head, which alone is marked."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_dim
        self.first = nn.Linear(2 * width, width)
        self.second = nn.Linear(width, width)
        self.hops = nn.ModuleList([Hop(config) for _ in range(config.value_hops)])

    def pack(self) -> StreamWeights:
        """Returns the weights in the form that kernels take."""
        width, weight = self.second.in_features, self.first.weight
        # The head is marked by a row of ones, every other entity by zeros.
        indicator = weight[:, width:].sum(1)
        second = self.second.weight, self.second.bias
        extra = self.first.bias.unsqueeze(0)
        start = InputWeights.pack(extra, weight[:, :width], second, indicator)
        return StreamWeights(start, _packed(self.hops))


def _packed(hops: nn.ModuleList) -> tuple[HopWeights, ...]:
    typed: list[Hop] = list(hops)  # pyright: ignore[reportAssignmentType]
    return tuple(hop.pack() for hop in typed)
