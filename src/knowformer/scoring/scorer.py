"""Scorer: a model bound to a graph and a seed; queries in, repeatable scores out."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import NO_HEAD, Backend, Edges, QueryView, check_ids
from knowformer.model.knowformer import KnowFormer
from knowformer.model.micro_batches import MICRO_BATCH_FLOATS, micro_batch_size
from knowformer.model.noise import identity_noise, inference_draw
from knowformer.model.relation_encoder import encode_invariantly
from knowformer.model.run import FirstStates, query_key_vectors, run
from knowformer.model.weights import (
    ModelWeights,
    RelationVectors,
    select_queries,
    with_noise_inputs,
)
from knowformer.queries.scores import Scores
from knowformer.scoring.batch_size import check_whole_graph
from knowformer.system.workers import shared_workers, torch_on_one_core
from knowformer.views.extractor import ViewExtractor, extractor_of
from knowformer.views.views import Outside, Views

SHARED_SIZE = 16  # queries of one relation that share work; more would leave threads idle


class Scorer:
    """A model bound to a graph and a seed: queries in, repeatable scores out."""

    def __init__(
        self,
        model: KnowFormer,
        graph: KnowledgeGraph,
        *,
        seed: int,
        sample: int = 0,
        threads: int = 0,
    ) -> None:
        self.model = model
        self.graph = graph
        self._workers = shared_workers(threads)
        self._noise_of = partial(
            identity_noise, model.config, seed=seed, draw=inference_draw(sample)
        )
        settings = model.config.view_of(len(graph.entities))
        if settings is None:
            sizes = len(graph.entities), graph.adjacency.num_edges
            check_whole_graph(*sizes, model.config.hidden_dim)
        self._extractor = settings and extractor_of(graph.adjacency, graph.entity_keys, settings)

    @torch_on_one_core()
    def score(
        self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"], *, outside: bool = False
    ) -> Scores:
        """Returns the scores of every entity that each query sees.

        Args:
            heads: the queries' heads.
            relations: the queries' relations.
            outside: also order what queries do not see.

        Raises:
            DataError: an id is out of range.
        """
        check_ids(heads, len(self.graph.entities), "head")
        check_ids(relations, num_with_inverses(len(self.graph.relations)), "relation")
        if len(heads) == 0:
            return Scores.of_all(torch.zeros(0, len(self.graph.entities)))
        if self._extractor is not None:
            return self._score_views(self._extractor, heads, relations, outside=outside)
        return self._score_whole(heads, relations)

    def _score_whole(self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]) -> Scores:
        # Built once and kept: were they built in inference mode, training could not use them later.
        edges = self.graph.adjacency.edges
        distinct: Tensor
        distinct, row = torch.unique(relations, return_inverse=True)
        chunks = _by_relation(relations)
        # Too few chunks to keep all threads busy: each is divided among them instead, where its
        # pieces are worth handing over. On a small graph that takes longer than the work.
        is_large = edges.num_entities * self.model.config.hidden_dim >= MICRO_BATCH_FLOATS
        divides = is_large and len(chunks) < self._workers.threads
        backend = self.model.backend.across(self._workers.map) if divides else self.model.backend
        encode = partial(self._encode, distinct)
        pack = partial(self.model.pack, self.identity_noise)
        vectors, weights = self._workers.map(_without_gradients, [encode, pack])

        def score_chunk(chunk: Tensor) -> Tensor:
            at = int(row[chunk[0]])
            of_relation = select_queries(vectors, slice(at, at + 1))
            return _score_heads(
                weights, edges, heads[chunk], of_relation, backend, size=self._micro_batch_size
            )

        scored = map(score_chunk, chunks) if divides else self._workers.imap(score_chunk, chunks)
        scores = torch.empty(len(heads), edges.num_entities, dtype=weights.score.bias.dtype)
        for chunk, of_chunk in zip(chunks, scored, strict=True):
            scores[chunk] = of_chunk
        return Scores.of_all(scores)

    def _score_views(
        self,
        extractor: ViewExtractor,
        heads: Int[Tensor, " B"],
        relations: Int[Tensor, " B"],
        *,
        outside: bool,
    ) -> Scores:
        """Scores queries that each see a part of the graph, a few at a time."""
        model, keys = self.model, self.graph.entity_keys
        distinct: Tensor
        distinct, row = torch.unique(relations, return_inverse=True)
        make = [partial(self._encode, distinct), self._pack_without_entities]
        vectors, packed = self._workers.map(_without_gradients, make)

        @torch.inference_mode()
        def score_chunk(chunk: slice) -> tuple[Views, Tensor]:
            views = extractor.extract(heads[chunk], relations[chunk], outside=outside)
            noise = self._noise_of(keys[views.entities.numpy()])
            # Query by query: the rounding of a product of matrices depends on how many rows it has.
            rows = views.view.offsets.diff().tolist()
            inputs = [model.noise_inputs(part) for part in noise.split(rows, dim=1)]
            joined = [_joined(of_layer) for of_layer in zip(*inputs, strict=True)]
            weights = with_noise_inputs(packed, joined)
            of_chunk = select_queries(vectors, row[chunk])
            return views, run(weights, views.view, of_chunk, model.backend)

        size = self._micro_batch_size
        chunks = [slice(first, first + size) for first in range(0, len(heads), size)]
        views, values = zip(*self._workers.map(score_chunk, chunks), strict=True)
        return _joined_scores(views, values, len(self.graph.entities))

    def _encode(self, relations: Int[Tensor, " Q"]) -> RelationVectors:
        graph = self.model.relation_graph(self.graph.adjacency)
        return encode_invariantly(self.model.encoder, relations, graph)

    def _pack_without_entities(self) -> ModelWeights:
        return self.model.pack(self._noise_of(np.empty(0, dtype=np.uint64)))

    @cached_property
    def identity_noise(self) -> Float[Tensor, "L V noise"]:
        """The noise of every entity."""
        return self._noise_of(self.graph.entity_keys)

    @property
    def _micro_batch_size(self) -> int:
        """Queries that run together: one, where the bits would depend on the others."""
        if not self.model.is_batch_invariant:
            return 1
        config = self.model.config
        num_seen = config.num_seen(len(self.graph.entities))
        return micro_batch_size(SHARED_SIZE, num_seen, config.hidden_dim)


@torch.inference_mode()
def _without_gradients(make: Callable[[], Any]) -> Any:
    """Calls a function in inference mode, which each thread has to itself."""
    return make()


@torch.inference_mode()
def _score_heads(
    weights: ModelWeights,
    edges: Edges,
    heads: Int[Tensor, " b"],
    vectors: RelationVectors,
    backend: Backend,
    *,
    size: int,
) -> Float[Tensor, "b V"]:
    """Scores queries of one relation, ``size`` at a time; what they share is made once.

    In the first layer that is the whole query stream, and of the value stream what the head is too
    far away from to change.
    """
    layer, of_layer = weights.layers[0], vectors[0]
    query_key, background = None, None
    if layer.query_key is not None:
        alone = QueryView.whole(edges, torch.tensor([NO_HEAD]))
        hops = query_key_vectors(layer, of_layer)
        query_key = backend.stream(None, layer.query_key, hops, alone)
    if len(heads) > 1:
        background = backend.stream_background(layer.value, of_layer.value, edges)
    scores: list[Tensor] = []
    for some in heads.split(size):
        view, value = QueryView.whole(edges, some), None
        if background is not None:
            value = backend.stream_near_heads(background, layer.value, of_layer.value, view)
        of_each = None if query_key is None else query_key.repeat(len(some), 1)
        each = select_queries(vectors, torch.zeros_like(some))
        row_scores = run(weights, view, each, backend, first=FirstStates(of_each, value))
        scores.append(row_scores.view(len(some), -1))
    return torch.cat(scores)


def _by_relation(relations: Int[Tensor, " B"]) -> list[Int[Tensor, " b"]]:
    """Returns the positions of queries with the same relation, some at a time."""
    order = torch.argsort(relations, stable=True)
    counts = torch.unique_consecutive(relations[order], return_counts=True)[1]
    of_relation = order.split(counts.tolist())
    return [chunk for positions in of_relation for chunk in positions.split(SHARED_SIZE)]


def _joined(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Returns tensors end to end; None if there are none."""
    there = [part for part in parts if part is not None]
    return torch.cat(there) if there else None


def _joined_scores(views: Sequence[Views], values: Sequence[Tensor], num_entities: int) -> Scores:
    """Returns the scores of several chunks of queries as one."""
    lengths = torch.cat([each.view.offsets.diff() for each in views])
    orders = [each.outside for each in views if each.outside is not None]
    return Scores(
        torch.cat(tuple(values)),
        torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]),
        num_entities,
        entities=torch.cat([each.entities for each in views]),
        outside=Outside.join(orders) if orders else None,
    )
