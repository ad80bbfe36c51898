"""Scorer: a model bound to a graph and a seed; queries in, repeatable scores out."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import NO_HEAD, Edges, QueryView
from knowformer.model.knowformer import KnowFormer
from knowformer.model.micro_batches import micro_batch_size
from knowformer.model.noise import identity_noise
from knowformer.model.relation_encoder import encode_invariantly
from knowformer.model.run import FirstStates, query_key_vectors, run
from knowformer.model.weights import RelationVectors, select_queries
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
    def score(self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Returns the scores of every entity for every query."""
        if len(heads) == 0:
            return torch.zeros(0, len(self.graph.entities))
        # Built once and kept: were they built in inference mode, training could not use them later.
        edges = self.graph.adjacency.edges
        distinct: Tensor
        distinct, row = torch.unique(relations, return_inverse=True)
        chunks = _by_relation(relations)
        with torch.inference_mode():
            vectors = encode_invariantly(self.model.encoder, distinct)
            work = _Work(self, edges, divides_queries=len(chunks) < self._workers.threads)

        def score_chunk(chunk: Tensor) -> Tensor:
            at = int(row[chunk[0]])
            return work.score(heads[chunk], select_queries(vectors, slice(at, at + 1)))

        if work.divides_queries:
            scores = torch.cat([score_chunk(chunk) for chunk in chunks])
        else:
            scores = torch.cat(self._workers.map(score_chunk, chunks))
        return scores[torch.argsort(torch.cat(chunks))].view(len(heads), -1)


class _Work:
    """What all queries of one call have in common."""

    def __init__(self, scorer: Scorer, edges: Edges, *, divides_queries: bool) -> None:
        model = scorer.model
        self._edges = edges
        self._weights = model.pack(scorer.identity_noise)
        self._backend = model.backend
        self.divides_queries = divides_queries
        if divides_queries:
            self._backend = model.backend.across(scorer._workers.map)
        self._size = 1
        if model.is_batch_invariant:
            width = model.config.hidden_dim
            self._size = micro_batch_size(SHARED_SIZE, edges.num_entities, width)

    @torch.inference_mode()
    def score(
        self, heads: Int[Tensor, " b"], vectors: RelationVectors
    ) -> Float[Tensor, "b V"]:
        """Scores queries of one relation, a micro-batch at a time; what they share is made once.

        In the first layer that is the whole query stream, and of the value stream what the head is
        too far away from to change.
        """
        backend, layer = self._backend, self._weights.layers[0]
        query_key, background = None, None
        if layer.query_key is not None:
            alone = QueryView.whole(self._edges, torch.tensor([NO_HEAD]))
            hops = query_key_vectors(layer, vectors[0])
            query_key = backend.stream(None, layer.query_key, hops, alone)
        if len(heads) > 1:
            background = backend.stream_background(layer.value, vectors[0].value, self._edges)
        scores: list[Tensor] = []
        for part in heads.split(self._size):
            view = QueryView.whole(self._edges, part)
            value = None
            if background is not None:
                value = backend.stream_near_heads(background, layer.value, vectors[0].value, view)
            first = FirstStates(None if query_key is None else query_key.repeat(len(part), 1), value)
            each = select_queries(vectors, torch.zeros_like(part))
            scores.append(run(self._weights, view, each, backend, first=first).view(len(part), -1))
        return torch.cat(scores)


def _by_relation(relations: Int[Tensor, " B"]) -> list[Int[Tensor, " b"]]:
    """Returns the positions of queries with the same relation, some at a time."""
    order = torch.argsort(relations, stable=True)
    counts = torch.unique_consecutive(relations[order], return_counts=True)[1]
    of_relation = order.split(counts.tolist())
    return [chunk for positions in of_relation for chunk in positions.split(SHARED_SIZE)]
