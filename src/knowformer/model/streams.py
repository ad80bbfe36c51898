"""QueryKeyStream and ValueStream: structure-aware encoders of every entity (eq. 6 and 7).

Both start from MLP([entity_states, something]). The first linear map is taken apart: what the
something adds to the hidden layer is the same for all queries (noise) or for one row (the head).
"""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import Backend, Edges, InputWeights
from knowformer.model.config import ModelConfig
from knowformer.model.message_passing import Hop, RelationProjection
from knowformer.model.weights import StreamWeights


class QueryKeyStream(nn.Module):
    """Context of each entity, told apart by noise; its hops share one set of relation vectors."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        width = config.hidden_dim
        self.first = nn.Linear(width + config.noise_width, width)
        self.second = nn.Linear(width, width)
        hops = config.num_query_key_hops
        self.relation_vectors = RelationProjection(config, num_relations) if hops else None
        self.hops = nn.ModuleList([Hop(config) for _ in range(hops)])

    def weights(self, identity_noise: Float[Tensor, "V N"]) -> StreamWeights:
        """Returns the weights in the form that kernels take, for entities with this noise."""
        width, weight = self.second.in_features, self.first.weight
        return StreamWeights(
            nn.functional.linear(identity_noise, weight[:, width:], self.first.bias),
            InputWeights.pack(weight[:, :width], (self.second.weight, self.second.bias), None),
            tuple(hop.weights() for hop in _typed(self.hops)),
        )

    def vectors(self, query_relation: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B R D"], ...]:
        """Returns the relation vectors of each hop: the same for all."""
        made = None if self.relation_vectors is None else self.relation_vectors(query_relation)
        return () if made is None else (made,) * len(self.hops)


class ValueStream(nn.Module):
    """What each entity is to the head; every hop has relation vectors of its own."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        width = config.hidden_dim
        self.first = nn.Linear(2 * width, width)
        self.second = nn.Linear(width, width)
        hops = config.num_value_hops if config.value_stream else 0
        self.relation_vectors = nn.ModuleList(
            [RelationProjection(config, num_relations) for _ in range(hops)]
        )
        self.hops = nn.ModuleList([Hop(config) for _ in range(hops)])

    def weights(self) -> StreamWeights:
        """Returns the weights in the form that kernels take."""
        width, weight = self.second.in_features, self.first.weight
        # The head is marked by a row of ones, every other entity by zeros.
        bonus = weight[:, width:].sum(1)
        return StreamWeights(
            self.first.bias.unsqueeze(0),
            InputWeights.pack(weight[:, :width], (self.second.weight, self.second.bias), bonus),
            tuple(hop.weights() for hop in _typed(self.hops)),
        )

    def vectors(self, query_relation: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B R D"], ...]:
        """Returns the relation vectors of each hop."""
        return tuple(make(query_relation) for make in self.relation_vectors)


def run_stream(
    entity_states: Float[Tensor, "B V D"] | None,
    weights: StreamWeights,
    vectors: Sequence[Float[Tensor, "B R D"]],
    edges: Edges,
    *,
    heads: Int[Tensor, " B"] | None,
    num_queries: int,
    backend: Backend,
) -> Float[Tensor, "B V D"]:
    """Returns query_key_states, the paper's z~, or given heads value_states, its z^.

    Entity states of None are zero.
    """
    arguments = (entity_states, weights, vectors, edges)
    return stream_states(*arguments, heads=heads, num_queries=num_queries, backend=backend)[-1]


def stream_states(
    entity_states: Float[Tensor, "B V D"] | None,
    weights: StreamWeights,
    vectors: Sequence[Float[Tensor, "B R D"]],
    edges: Edges,
    *,
    heads: Int[Tensor, " B"] | None,
    num_queries: int,
    backend: Backend,
) -> list[Float[Tensor, "B V D"]]:
    """Returns a stream's states after 0, 1, ... hops."""
    states = [
        backend.stream_input(
            entity_states,
            weights.extra,
            weights.start,
            heads=heads,
            num_queries=num_queries,
            num_entities=edges.num_entities,
        )
    ]
    for hop, relation_vectors in zip(weights.hops, vectors, strict=True):
        states.append(backend.hop(states[-1], relation_vectors, edges, hop))
    return states


def _typed(hops: nn.ModuleList) -> list[Hop]:
    return [hop for hop in hops if isinstance(hop, Hop)]
