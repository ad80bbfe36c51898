"""Scorer: a model bound to a graph and a seed; queries in, repeatable scores out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import NO_HEAD, Backend, Edges, QueryView
from knowformer.model.knowformer import KnowFormer
from knowformer.model.micro_batches import micro_batch_size
from knowformer.model.noise import identity_noise
from knowformer.model.relation_encoder import encode_invariantly
from knowformer.model.run import FirstStates, query_key_vectors, run
from knowformer.model.weights import ModelWeights, RelationVectors, select_queries
from knowformer.queries.scores import Scores
from knowformer.system.workers import shared_workers, torch_on_one_core

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
        self.identity_noise = identity_noise(
            model.config, graph.entity_keys, seed=seed, draw=f"inference-{sample}"
        )

    @torch_on_one_core()
    def score(self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]) -> Scores:
        """Returns the scores of every entity for every query."""
        if len(heads) == 0:
            return Scores.of_all(torch.zeros(0, len(self.graph.entities)))
        # Built once and kept: were they built in inference mode, training could not use them later.
        edges = self.graph.adjacency.edges
        distinct: Tensor
        distinct, row = torch.unique(relations, return_inverse=True)
        chunks = _by_relation(relations)
        # Too few chunks to keep all threads busy: each is divided among them instead.
        divides = len(chunks) < self._workers.threads
        backend = self.model.backend.across(self._workers.map) if divides else self.model.backend
        encode = partial(encode_invariantly, self.model.encoder, distinct)
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

    @property
    def _micro_batch_size(self) -> int:
        """Queries that run together: one, where the bits would depend on the others."""
        if not self.model.is_batch_invariant:
            return 1
        width = self.model.config.hidden_dim
        return micro_batch_size(SHARED_SIZE, len(self.graph.entities), width)


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
