"""Relation encoders: what each relation does to messages, given the query's relation (eq. 5).

An encoder makes a vector for every pair of a query's relation and a relation of the graph, for each
layer and hop. Everything after it sees these vectors alone, so where they come from is its matter:
``TableEncoder`` learns them, ``GraphEncoder`` (its own file) makes them from the relation graph.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from knowformer.graph.relation_graph import RelationGraph
from knowformer.model.config import ModelConfig
from knowformer.model.weights import (
    LayerVectors,
    RelationVectors,
    select_queries,
    tensors_in,
    with_tensors,
)


@runtime_checkable
class RelationEncoder(Protocol):
    """Makes relation vectors; a module with parameters of its own."""

    tile: int
    """Relations to encode together where bits must not depend on the others."""

    def __call__(
        self,
        relations: Int[Tensor, " Q"],
        relation_graph: RelationGraph | None = None,
        *,
        permutation: Int[Tensor, " R"] | None = None,
    ) -> RelationVectors:
        """Returns the relation vectors of each query relation.

        Args:
            relations: the queries' relations.
            relation_graph: how the relations meet, if the encoder reads it; see
                ``KnowFormer.relation_graph``.
            permutation: for each relation the one whose weights stand for it, in this batch; None:
                its own.
        """
        ...

    def first_modules(self) -> Iterator[nn.Module]:
        """Yields the modules with parameters that serve all layers."""
        ...

    def typed_layers(self) -> "Sequence[VectorsOfLayer]":
        """Returns what makes the vectors of each layer."""
        ...


class VectorsOfLayer(Protocol):
    """Modules that make the relation vectors of one layer."""

    @property
    def query_key(self) -> nn.Module | None:
        """What makes those of the query stream, if it has hops."""
        ...

    @property
    def value(self) -> nn.ModuleList:
        """What makes those of each hop of the value stream."""
        ...


class RelationProjection(nn.Module):
    """Linear maps from the query's relation to a vector for every relation, in one layer."""

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        self._num_relations = num_relations
        size = config.hidden_dim, num_relations * config.hidden_dim
        self.query_key = nn.Linear(*size) if config.has_query_key_hops else None
        self.value = nn.ModuleList([nn.Linear(*size) for _ in range(config.value_hops)])

    def forward(self, query_relation: Float[Tensor, "Q D"]) -> LayerVectors:
        """Returns the vectors of every relation, for the query stream and each value hop."""
        form = (self._num_relations, -1)
        query_key = None
        if self.query_key is not None:
            query_key = self.query_key(query_relation).unflatten(-1, form)
        value = tuple(project(query_relation).unflatten(-1, form) for project in self.value)
        return LayerVectors(query_key, value)


def embedding(number: int, width: int) -> nn.Embedding:
    """Returns vectors that ``initialize`` fills.

    Not by nn.Embedding itself: where a model is built without memory, before weights are loaded,
    its random numbers make torch import its compiler, for seconds.
    """
    return nn.Embedding.from_pretrained(torch.empty(number, width), freeze=False)


class TableEncoder(nn.Module):
    """A learned vector for every relation, and from it linear maps: the paper's encoder."""

    tile = 8

    def __init__(self, config: ModelConfig, num_relations: int) -> None:
        super().__init__()
        self.query_relations = embedding(num_relations, config.hidden_dim)
        self.layers = nn.ModuleList(
            [RelationProjection(config, num_relations) for _ in range(config.layers)]
        )

    def forward(
        self,
        relations: Int[Tensor, " Q"],
        relation_graph: RelationGraph | None = None,
        *,
        permutation: Int[Tensor, " R"] | None = None,
    ) -> RelationVectors:
        """See ``RelationEncoder``."""
        del relation_graph
        if permutation is not None:
            relations = permutation[relations]
        query_relation = self.query_relations(relations)
        vectors: RelationVectors = tuple(layer(query_relation) for layer in self.layers)
        if permutation is None:
            return vectors
        permuted = [tensor.index_select(1, permutation) for tensor in tensors_in(vectors)]
        return with_tensors(vectors, permuted)

    def first_modules(self) -> Iterator[nn.Module]:
        """See ``RelationEncoder``."""
        yield self.query_relations

    def typed_layers(self) -> list[RelationProjection]:
        """Returns the projections of each layer."""
        layers: list[RelationProjection] = list(self.layers)  # pyright: ignore[reportAssignmentType]
        return layers


def encode_invariantly(
    encoder: RelationEncoder,
    relations: Int[Tensor, " Q"],
    relation_graph: RelationGraph | None = None,
) -> RelationVectors:
    """Returns batch-invariant relation vectors: their bits do not depend on the other relations.

    A matrix product's bits depend on how many rows it has, so it always has the same number.
    """
    made: list[RelationVectors] = []
    for tile in relations.split(encoder.tile):
        filler = tile[-1:].expand(encoder.tile - len(tile))
        encoded = encoder(torch.cat([tile, filler]), relation_graph)
        made.append(select_queries(encoded, slice(0, len(tile))))
    joined = [torch.cat(tensors) for tensors in zip(*map(tensors_in, made), strict=True)]
    return with_tensors(made[0], joined)
