"""QueryKeyStream and ValueStream: structure-aware encoders of every entity (eq. 6 and 7)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import Backend, Edges
from knowformer.model.config import ModelConfig
from knowformer.model.message_passing import Hop, RelationVectors


class QueryKeyStream(nn.Module):
    """Context of each entity, told apart by noise; its hops share one set of relation vectors."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        self.input = _input_mlp(config.hidden_dim + config.noise_width, config.hidden_dim)
        hops = config.num_query_key_hops
        self.relation_vectors = RelationVectors(config, num_relations) if hops else None
        self.hops = nn.ModuleList([Hop(config) for _ in range(hops)])

    def forward(
        self,
        entity_states: Float[Tensor, "B V D"],
        query_relation: Float[Tensor, "B D"],
        edges: Edges,
        *,
        identity_noise: Float[Tensor, "V N"],
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Returns query_key_states, the paper's z~."""
        noise = identity_noise.expand(len(entity_states), -1, -1)
        states = self.input(torch.cat([entity_states, noise], -1))
        if self.relation_vectors is None:
            return states
        relation_vectors = self.relation_vectors(query_relation)
        for hop in self.hops:
            states = hop(states, relation_vectors, edges, backend=backend)
        return states


class ValueStream(nn.Module):
    """What each entity is to the head; every hop has relation vectors of its own."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        width = config.hidden_dim
        self.input = _input_mlp(2 * width, width)
        hops = config.num_value_hops if config.value_stream else 0
        self.relation_vectors = nn.ModuleList(
            [RelationVectors(config, num_relations) for _ in range(hops)]
        )
        self.hops = nn.ModuleList([Hop(config) for _ in range(hops)])

    def forward(
        self,
        entity_states: Float[Tensor, "B V D"],
        query_relation: Float[Tensor, "B D"],
        heads: Int[Tensor, " B"],
        edges: Edges,
        *,
        backend: Backend,
    ) -> Float[Tensor, "B V D"]:
        """Returns value_states, the paper's z^."""
        head_indicator = torch.zeros_like(entity_states)
        head_indicator[torch.arange(len(heads)), heads] = 1.0
        states = self.input(torch.cat([entity_states, head_indicator], -1))
        for hop, relation_vectors in zip(self.hops, self.relation_vectors, strict=True):
            states = hop(states, relation_vectors(query_relation), edges, backend=backend)
        return states


def _input_mlp(in_width: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(in_width, width), nn.ReLU(), nn.Linear(width, width))
