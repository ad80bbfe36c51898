"""KnowFormer: (edges, queries, noise) -> a score for every entity; reads like the paper.

Choices that are not in the paper's text, or differ from the authors' released code:
- each layer is built afresh (the released code copies one layer, so its layers start equal);
- noise is an argument, shared by the queries of a batch and repeatable (see ``model.noise``);
- nothing exists that is not used, so every parameter receives a gradient.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import Backend, Edges, select_backend
from knowformer.model.config import ModelConfig
from knowformer.model.layer import KnowFormerLayer
from knowformer.model.message_passing import Hop


class KnowFormer(nn.Module):
    """Scores (head, relation, ?) against every entity of a graph."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        """Builds a model with uninitialised weights; see ``initialize``.

        Args:
            config: the model's settings.
            num_relations: R, relations of the graph with inverses.
        """
        super().__init__()
        self.config = config
        self.num_relations = num_relations
        self.backend: Backend = select_backend()
        width = config.hidden_dim
        self.query_relations = nn.Embedding(num_relations, width)
        self.layers = nn.ModuleList(
            [KnowFormerLayer(config, num_relations) for _ in range(config.num_layers)]
        )
        self.score = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(
        self,
        edges: Edges,
        heads: Int[Tensor, " B"],
        relations: Int[Tensor, " B"],
        *,
        identity_noise: Float[Tensor, "L V N"],
        dropout_generator: torch.Generator | None = None,
    ) -> Float[Tensor, "B V"]:
        """Returns scores: logits, higher is better. Dropout acts only when given a generator."""
        query_relation = self.query_relations(relations)
        entity_states = query_relation.new_zeros(
            len(heads), edges.num_entities, self.config.hidden_dim
        )
        for layer, noise in zip(self.layers, identity_noise, strict=True):
            entity_states = layer(
                entity_states,
                query_relation,
                heads,
                edges,
                identity_noise=noise.to(entity_states.dtype),
                dropout_generator=dropout_generator,
                backend=self.backend,
            )
        return self.score(entity_states).squeeze(-1)


def initialize(model: KnowFormer, *, generator: torch.Generator) -> None:
    """Draws every weight, in the order of the modules, from one generator."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            bound = module.in_features**-0.5  # torch's own rule for nn.Linear
            nn.init.uniform_(module.weight, -bound, bound, generator=generator)
            nn.init.uniform_(module.bias, -bound, bound, generator=generator)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, generator=generator)
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, Hop):
            nn.init.normal_(module.self_weight, generator=generator)
