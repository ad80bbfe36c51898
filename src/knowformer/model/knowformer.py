"""KnowFormer: (edges, queries, noise) -> a score for every entity; reads like the paper.

Choices that are not in the paper's text, or differ from the authors' released code:
- each layer is built afresh (the released code copies one layer, so its layers start equal);
- noise is an argument, shared by the queries of a batch and repeatable (see ``model.noise``);
- nothing exists that is not used, so every parameter receives a gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import Backend, Edges, ScoreWeights, select_backend
from knowformer.model.config import ModelConfig
from knowformer.model.layer import KnowFormerLayer, RelationVectorsOfLayer
from knowformer.model.message_passing import Hop, RelationVectors


class KnowFormer(nn.Module):
    """Scores (head, relation, ?) against every entity of a graph."""

    def __init__(self, config: ModelConfig, num_relations: int, *, backend: str = "auto") -> None:
        """Builds a model with uninitialised weights; see ``initialize``.

        Args:
            config: the model's settings.
            num_relations: R, relations of the graph with inverses.
            backend: the kernels' name; see ``kernels.interface.select_backend``.
        """
        super().__init__()
        self.config = config
        self.num_relations = num_relations
        self.backend: Backend = select_backend(backend)
        width = config.hidden_dim
        self.query_relations = nn.Embedding(num_relations, width)
        self.layers = nn.ModuleList(
            [KnowFormerLayer(config, num_relations) for _ in range(config.num_layers)]
        )
        self.score_hidden = nn.Linear(width, width)
        self.score_last = nn.Linear(width, 1)

    def forward(
        self,
        edges: Edges,
        heads: Int[Tensor, " B"],
        relations: Int[Tensor, " B"],
        *,
        identity_noise: Float[Tensor, "L V N"],
        dropout_generator: np.random.Generator | None = None,
    ) -> Float[Tensor, "B V"]:
        """Returns scores: logits, higher is better. Dropout acts only when given a generator."""
        distinct: Tensor
        distinct, row_of_query = torch.unique(relations, return_inverse=True)
        # One by one: a matrix product's bits depend on how many rows it has.
        each = [self.relation_vectors(relation) for relation in distinct.split(1)]
        stacked = [
            torch.cat(tensors).index_select(0, row_of_query)
            for tensors in zip(*(vectors.tensors() for vectors in each), strict=True)
        ]
        return self.score_entities(
            edges,
            heads,
            relations,
            each[0].with_tensors(stacked),
            identity_noise=identity_noise,
            dropout_generator=dropout_generator,
        )

    def relation_vectors(self, relations: Int[Tensor, " B"]) -> "RelationVectorsOfLayers":
        """Returns what each relation does to messages under each query's relation."""
        query_relation = self.query_relations(relations)
        return RelationVectorsOfLayers(
            tuple(layer.relation_vectors(query_relation) for layer in self._typed_layers())
        )

    def score_entities(
        self,
        edges: Edges,
        heads: Int[Tensor, " B"],
        relations: Int[Tensor, " B"],
        vectors: "RelationVectorsOfLayers",
        *,
        identity_noise: Float[Tensor, "L V N"],
        dropout_generator: np.random.Generator | None,
    ) -> Float[Tensor, "B V"]:
        """Scores with relation vectors that were made before."""
        dtype = self.query_relations.weight.dtype
        entity_states: Tensor | None = None  # all zero; no need to make them
        for layer, of_layer, noise in zip(self.layers, vectors.layers, identity_noise, strict=True):
            entity_states = layer(
                entity_states,
                of_layer,
                heads,
                relations,
                edges,
                identity_noise=noise.to(dtype),
                dropout_generator=dropout_generator,
                backend=self.backend,
            )
        assert entity_states is not None
        hidden, last = self.score_hidden, self.score_last
        return self.backend.score(
            entity_states,
            ScoreWeights((hidden.weight, hidden.bias), (last.weight, last.bias)),
        )

    @property
    def is_batch_invariant(self) -> bool:
        """Whether a query's scores have the same bits in any batch."""
        config = self.config
        return config.attention and self.backend.is_batch_invariant(
            width=config.hidden_dim, num_heads=config.num_heads, similarity=config.similarity
        )

    def relation_parameters(self) -> list[nn.Parameter]:
        """Returns the parameters that reach scores through the relation vectors alone."""
        projections = [m for m in self.modules() if isinstance(m, RelationVectors)]
        return [p for module in (self.query_relations, *projections) for p in module.parameters()]

    def _typed_layers(self) -> list[KnowFormerLayer]:
        return [layer for layer in self.layers if isinstance(layer, KnowFormerLayer)]


@dataclass(frozen=True)
class RelationVectorsOfLayers:
    """Relation vectors of all layers, as a list of tensors and back."""

    layers: tuple[RelationVectorsOfLayer, ...]

    def tensors(self) -> list[Float[Tensor, "B R D"]]:
        """Returns all tensors, layer by layer."""
        found: list[Tensor] = []
        for layer in self.layers:
            found += [*([] if layer.query_key is None else [layer.query_key]), *layer.value]
        return found

    def with_tensors(self, tensors: Sequence[Float[Tensor, "b R D"]]) -> "RelationVectorsOfLayers":
        """Returns the same arrangement of other tensors."""
        others = iter(tensors)
        return RelationVectorsOfLayers(
            tuple(
                RelationVectorsOfLayer(
                    None if layer.query_key is None else next(others),
                    tuple(next(others) for _ in layer.value),
                )
                for layer in self.layers
            )
        )


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
