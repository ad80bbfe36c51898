"""Scorer: a model bound to a graph and a seed; queries in, repeatable scores out."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer, one_by_one
from knowformer.model.noise import identity_noise
from knowformer.model.slices import slice_size
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
        model, size = self.model, 1
        if model.is_batch_invariant:
            size = slice_size(SHARED_SIZE, len(self.graph.entities), model.config.hidden_dim)
        distinct: Tensor
        distinct, row = torch.unique(relations, return_inverse=True)
        with torch.inference_mode():
            weights = model.weights(self.identity_noise)
            vectors = one_by_one(model.steady_relation_vectors(distinct), len(distinct))

        def score_chunk(chunk: Tensor) -> Tensor:
            own = vectors[int(row[chunk[0]])]
            return model.score_heads(edges, heads[chunk], own, weights, size=size)

        chunks = _by_relation(relations)
        scores = torch.cat(self._workers.map(score_chunk, chunks))
        return scores[torch.argsort(torch.cat(chunks))]


def _by_relation(relations: Int[Tensor, " B"]) -> list[Int[Tensor, " b"]]:
    """Returns the positions of queries with the same relation, some at a time."""
    order = torch.argsort(relations, stable=True)
    counts = torch.unique_consecutive(relations[order], return_counts=True)[1]
    of_relation = order.split(counts.tolist())
    return [chunk for positions in of_relation for chunk in positions.split(SHARED_SIZE)]
