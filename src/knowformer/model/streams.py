"""QueryKeyStream and ValueStream: structure-aware encoders of every entity (eq. 6 and 7).

Both start from MLP([entity_states, something]). The first linear map is taken apart: what the
something adds to the hidden layer is the same for all queries (noise) or for one row (the head).
"""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import Backend, Edges, InputWeights
from knowformer.model.config import ModelConfig
from knowformer.model.message_passing import Hop, RelationVectors


class QueryKeyStream(nn.Module):
    """Context of each entity, told apart by noise; its hops share one set of relation vectors."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        width = config.hidden_dim
        self.first = nn.Linear(width + config.noise_width, width)
        self.second = nn.Linear(width, width)
        hops = config.num_query_key_hops
        self.relation_vectors = RelationVectors(config, num_relations) if hops else None
        self.hops = nn.ModuleList([Hop(config) for _ in range(hops)])

    def forward(
        self,
        entity_states: Float[Tensor, "B V D"] | None,
        relation_vectors: Float[Tensor, "B R D"] | None,
        edges: Edges,
        *,
        num_queries: int,
        identity_noise: Float[Tensor, "V N"],
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Returns query_key_states, the paper's z~; states of None are zero."""
        width = self.second.in_features
        weight = self.first.weight
        states = backend.stream_input(
            entity_states,
            nn.functional.linear(identity_noise, weight[:, width:], self.first.bias),
            InputWeights(weight[:, :width], self.second.weight, self.second.bias, None),
            heads=None,
            num_queries=num_queries,
            num_entities=edges.num_entities,
        )
        for hop in self.hops:
            states = hop(states, relation_vectors, edges, backend=backend)
        return states


class ValueStream(nn.Module):
    """What each entity is to the head; every hop has relation vectors of its own."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        width = config.hidden_dim
        self.first = nn.Linear(2 * width, width)
        self.second = nn.Linear(width, width)
        hops = config.num_value_hops if config.value_stream else 0
        self.relation_vectors = nn.ModuleList(
            [RelationVectors(config, num_relations) for _ in range(hops)]
        )
        self.hops = nn.ModuleList([Hop(config) for _ in range(hops)])

    def forward(
        self,
        entity_states: Float[Tensor, "B V D"] | None,
        relation_vectors: Sequence[Float[Tensor, "B R D"]],
        heads: Int[Tensor, " B"],
        edges: Edges,
        *,
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Returns value_states, the paper's z^; states of None are zero."""
        width = self.second.in_features
        weight = self.first.weight
        # The head is marked by a row of ones, every other entity by zeros.
        head_bonus = weight[:, width:].sum(1)
        states = backend.stream_input(
            entity_states,
            self.first.bias.unsqueeze(0),
            InputWeights(weight[:, :width], self.second.weight, self.second.bias, head_bonus),
            heads=heads,
            num_queries=len(heads),
            num_entities=edges.num_entities,
        )
        for hop, vectors in zip(self.hops, relation_vectors, strict=True):
            states = hop(states, vectors, edges, backend=backend)
        return states
