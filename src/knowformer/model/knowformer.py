"""KnowFormer: (edges, queries, noise) -> a score for every entity; reads like the paper.

Choices that are not in the paper's text, or differ from the authors' released code:
- each layer is built afresh (the released code copies one layer, so its layers start equal);
- noise is an argument, shared by the queries of a batch and repeatable (see ``model.noise``);
- nothing exists that is not used, so every parameter receives a gradient.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.kernels.interface import Backend, Edges, ScoreWeights, select_backend
from knowformer.model.config import ModelConfig
from knowformer.model.layer import KnowFormerLayer
from knowformer.model.message_passing import Hop
from knowformer.model.streams import run_stream, stream_states
from knowformer.model.weights import (
    ModelWeights,
    RelationVectors,
    SharedStates,
    tensors_in,
    with_tensors,
)

STEADY_ROWS = 8


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
        weights = self.weights(identity_noise)
        vectors = self.steady_relation_vectors(distinct)
        shared = [self.share(own, weights, edges) for own in one_by_one(vectors, len(distinct))]
        return self.score_entities(
            edges,
            heads,
            weights,
            select_rows(shared, row_of_query),
            dropout_generator=dropout_generator,
        )

    def weights(self, identity_noise: Float[Tensor, "L V N"]) -> ModelWeights:
        """Returns the weights in the form that kernels take, for entities with this noise."""
        hidden, last = self.score_hidden, self.score_last
        return ModelWeights(
            tuple(
                layer.weights(noise)
                for layer, noise in zip(self._typed_layers(), identity_noise, strict=True)
            ),
            ScoreWeights.pack((hidden.weight, hidden.bias), (last.weight, last.bias)),
        )

    def relation_vectors(
        self, relations: Int[Tensor, " B"], *, parts: Int[Tensor, " R"] | None = None
    ) -> RelationVectors:
        """Returns what each relation does to messages under each query's relation.

        Args:
            relations: the queries'.
            parts: for each relation the one whose weights stand for it; None: its own.
        """
        query_relation = self.query_relations(relations if parts is None else parts[relations])
        made = tuple(layer.relation_vectors(query_relation) for layer in self._typed_layers())
        if parts is None:
            return made
        before = tensors_in(made)
        return with_tensors(made, before, [tensor.index_select(1, parts) for tensor in before])

    def steady_relation_vectors(self, relations: Int[Tensor, " B"]) -> RelationVectors:
        """Returns relation vectors whose bits are the same in any company.

        A matrix product's bits depend on how many rows it has, so it always has the same number.
        """
        made: list[list[Tensor]] = []
        tree: RelationVectors = ()
        for part in relations.split(STEADY_ROWS):
            filler = part[-1:].expand(STEADY_ROWS - len(part))
            tree = self.relation_vectors(torch.cat([part, filler]))
            made.append([tensor[: len(part)] for tensor in tensors_in(tree)])
        joined = [torch.cat(tensors) for tensors in zip(*made, strict=True)]
        return with_tensors(tree, tensors_in(tree), joined)

    @property
    def has_query_stream(self) -> bool:
        """Whether queries and keys come from a stream of their own."""
        return self.config.attention and self.config.query_stream

    def first_states(
        self,
        weights: ModelWeights,
        vectors: tuple[Float[Tensor, "B R D"], ...],
        edges: Edges,
        *,
        num_queries: int,
    ) -> Float[Tensor, "B V D"]:
        """Returns the first layer's query stream, which sees the query's relation alone."""
        stream = weights.layers[0].query_key
        assert stream is not None
        return run_stream(
            None, stream, vectors, edges, heads=None, num_queries=num_queries, backend=self.backend
        )

    def share(self, vectors: RelationVectors, weights: ModelWeights, edges: Edges) -> SharedStates:
        """Returns what all queries with the same relation have in common, given its vectors."""
        if not self.has_query_stream:
            return SharedStates(vectors, None)
        states = self.first_states(weights, vectors[0].query_key, edges, num_queries=1)
        return SharedStates(vectors, states)

    @torch.inference_mode()
    def score_heads(
        self,
        edges: Edges,
        heads: Int[Tensor, " B"],
        relation_vectors: RelationVectors,
        weights: ModelWeights,
        *,
        size: int,
    ) -> Float[Tensor, "B V"]:
        """Scores queries of one relation, ``size`` at a time; what they share is made once.

        In the first layer that is the whole query stream, and of the value stream what the head is
        too far away from to change.
        """
        shared = self.share(relation_vectors, weights, edges)
        values, vectors = weights.layers[0].value, shared.vectors[0].value
        background = None
        if len(heads) > 1:
            background = stream_states(
                None, values, vectors, edges, heads=None, num_queries=1, backend=self.backend
            )
        scores: list[Tensor] = []
        for part in heads.split(size):
            first_values = None
            if background is not None:
                first_values = self.backend.spread(background, *values, vectors, edges, heads=part)
            rows = torch.zeros_like(part)
            scores.append(
                self.score_entities(
                    edges, part, weights, select_rows([shared], rows), first_values=first_values
                )
            )
        return torch.cat(scores)

    def score_entities(
        self,
        edges: Edges,
        heads: Int[Tensor, " B"],
        weights: ModelWeights,
        shared: SharedStates,
        *,
        first_values: Float[Tensor, "B V D"] | None = None,
        dropout_generator: np.random.Generator | None = None,
    ) -> Float[Tensor, "B V"]:
        """Scores, given a row of ``shared`` for every query.

        Args:
            edges: the graph.
            heads: the queries' heads.
            weights: what ``weights`` returns.
            shared: what ``share`` returns for the queries' relations.
            first_values: the first layer's value stream, if it is there already.
            dropout_generator: dropout acts only when given one.
        """
        entity_states: Tensor | None = None  # all zero; no need to make them
        for number, (layer, own) in enumerate(zip(self.layers, weights.layers, strict=True)):
            entity_states = layer(
                entity_states,
                own,
                shared.vectors[number],
                heads,
                edges,
                query_key_states=shared.first_states if number == 0 else None,
                value_states=first_values if number == 0 else None,
                dropout_generator=dropout_generator,
                backend=self.backend,
            )
        assert entity_states is not None
        return self.backend.score(entity_states, weights.score)

    @property
    def is_batch_invariant(self) -> bool:
        """Whether a query's scores have the same bits in any batch."""
        config = self.config
        return config.attention and self.backend.is_batch_invariant(
            width=config.hidden_dim, num_heads=config.num_heads, similarity=config.similarity
        )

    def _typed_layers(self) -> list[KnowFormerLayer]:
        return [layer for layer in self.layers if isinstance(layer, KnowFormerLayer)]


def one_by_one(vectors: RelationVectors, count: int) -> list[RelationVectors]:
    """Takes the relation vectors of several relations apart."""
    before = tensors_in(vectors)
    return [with_tensors(vectors, before, [t[i : i + 1] for t in before]) for i in range(count)]


def select_rows(shared: Sequence[SharedStates], rows: Int[Tensor, " B"]) -> SharedStates:
    """Joins what belongs to several relations and takes a row of it for every query."""
    joined = [
        tensors[0] if len(tensors) == 1 else torch.cat(tensors)
        for tensors in zip(*(tensors_in(each) for each in shared), strict=True)
    ]
    selected = [tensor.index_select(0, rows) for tensor in joined]
    return with_tensors(shared[0], tensors_in(shared[0]), selected)


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
