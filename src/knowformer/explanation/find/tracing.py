"""Gradients of an answer's log-odds in its messages and in the entities that are attended to.

The model runs as it always does, with a weight on every message of the value streams or on every
entity that is attended to. With all weights at one the scores are the model's; a weight of zero
removes its message or entity.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from jaxtyping import Float
from torch import Tensor

from knowformer.explanation.find.attention_rows import AttentionRows
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.prediction import Prediction
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import (
    NO_HEAD,
    AttendWeights,
    Backend,
    Edges,
    QueryView,
    kappa,
    queries_and_keys,
)
from knowformer.model.knowformer import KnowFormer
from knowformer.model.noise import identity_noise, inference_draw
from knowformer.model.relation_encoder import encode_invariantly
from knowformer.model.run import FirstStates, Probe, query_key_vectors, run
from knowformer.model.weights import ModelWeights, RelationVectors
from knowformer.queries.scores import Scores


@dataclass(frozen=True)
class Trace:
    """Scores, and the gradients of an answer's log-odds."""

    scores: Scores
    hops: Float[Tensor, "S E"]  # in each edge's message, in each hop of the value streams
    attention: AttentionRows | None  # None: the model has no attention


NUM_POINTS = 4  # strengths to integrate over; more do not change the order of evidence


class Tracer:
    """A model bound to a graph: scores and gradients of one prediction at a time."""

    def __init__(self, model: KnowFormer, graph: KnowledgeGraph, *, seed: int) -> None:
        """Binds a model.

        Args:
            model: the model.
            graph: the whole graph.
            seed: of the identity noise.
        """
        self.model = model
        self._entity_keys = graph.entity_keys
        self._relation_graph = model.relation_graph(graph.adjacency)
        # A Scorer's noise: the first of the draws at inference.
        self._noise_of = partial(identity_noise, model.config, seed=seed, draw=inference_draw())

    def score(
        self,
        prediction: Prediction,
        graph: EvidenceGraph,
        attended: Float[Tensor, " n"] | None = None,
    ) -> Scores:
        """Returns the scores of all entities that the query sees.

        Args:
            prediction: the query and its answer, which it need not see.
            graph: what the query sees.
            attended: a weight on each entity as others attend to it, in every layer and head.
        """
        with torch.inference_mode():
            prepared = self._prepare(prediction, graph)
            if attended is None:
                return self._scores(graph, prepared.run())
            weights = prepared.weights
            of_layer = attended.to(weights.score.bias.dtype)[:, None].expand(-1, weights.num_heads)
            probe = Probe(attended=[of_layer] * len(weights.layers))
            return self._scores(graph, prepared.run(probe))

    def trace(self, prediction: Prediction, graph: EvidenceGraph) -> Trace:
        """Runs the model, then differentiates the log-odds of an answer that the query sees.

        Gradients in messages are integrated gradients (Sundararajan et al. 2017): means over
        strengths of all messages from zero to one. At full strength alone, an answer that is
        certain has almost no gradient, however much it owes to a fact.
        """
        prepared = self._prepare(prediction, graph)
        scores, rows = prepared.attention()
        points = [(number + 0.5) / NUM_POINTS for number in range(NUM_POINTS)]
        hops = prepared.hop_gradients(points[0])[1]
        for strength in points[1:]:
            hops += prepared.hop_gradients(strength)[1]
        scored = self._scores(graph, scores)
        return Trace(scores=scored, hops=hops / NUM_POINTS, attention=rows)

    def attention(self, prediction: Prediction, graph: EvidenceGraph) -> AttentionRows | None:
        """Returns what the answer attends to: a fifth of the work of ``trace``."""
        return self._prepare(prediction, graph).attention()[1]

    def hop_gradients(
        self, prediction: Prediction, graph: EvidenceGraph, *, strength: float = 1.0
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, "S E"]]:
        """Returns scores with all messages at one strength, and the gradients in them there."""
        return self._prepare(prediction, graph).hop_gradients(strength)

    def _scores(self, graph: EvidenceGraph, values: Float[Tensor, " n"]) -> Scores:
        if self._is_whole(graph):
            return Scores.of_all(values[None])
        bounds, number = torch.tensor([0, len(values)]), len(self._entity_keys)
        return Scores(values, bounds, number, entities=graph.entities, outside=graph.outside)

    def _is_whole(self, graph: EvidenceGraph) -> bool:
        return graph.num_entities == len(self._entity_keys)

    def _noise(self, graph: EvidenceGraph) -> Float[Tensor, "L n noise"]:
        if self._is_whole(graph):
            return self._noise_of_all
        return self._noise_of(self._entity_keys[graph.entities.numpy()])

    @cached_property
    def _noise_of_all(self) -> Float[Tensor, "L V noise"]:
        return self._noise_of(self._entity_keys)

    def _prepare(self, prediction: Prediction, graph: EvidenceGraph) -> "_Prepared":
        model, relation, edges = self.model, torch.tensor([prediction.relation]), graph.edges
        with torch.no_grad():
            weights = model.pack(self._noise(graph))
            vectors = encode_invariantly(model.encoder, relation, self._relation_graph)
            layer, first = weights.layers[0], FirstStates()
            if layer.query_key is not None:
                # The first query stream sees no head, so it is the same in all runs.
                headless = QueryView.whole(edges, torch.tensor([NO_HEAD]))
                of_hops = query_key_vectors(layer, vectors[0])
                states = model.backend.stream(None, layer.query_key, of_hops, headless)
                first = FirstStates(query_key=states)
        own = prediction.within(graph.entities)
        return _Prepared(model.backend, own, edges, weights, vectors, first)


@dataclass(frozen=True)
class _Prepared:
    """What all runs of one prediction have in common."""

    backend: Backend
    prediction: Prediction  # among the entities that it sees
    edges: Edges
    weights: ModelWeights
    vectors: RelationVectors
    first: FirstStates

    def run(self, probe: Probe | None = None) -> Float[Tensor, " n"]:
        """Returns the scores, with the weights of a probe if there is one."""
        view = QueryView.whole(self.edges, torch.tensor([self.prediction.head]))
        return run(self.weights, view, self.vectors, self.backend, first=self.first, probe=probe)

    def attention(self) -> tuple[Float[Tensor, " n"], AttentionRows | None]:
        """Returns the scores, and what the answer attends to."""
        num_heads, num_entities = self.weights.num_heads, self.edges.num_entities
        if not num_heads:
            return self.run(), None
        like = self.weights.score.bias
        attended = [
            like.new_ones(num_entities, num_heads, requires_grad=True) for _ in self.weights.layers
        ]
        probe = Probe(attended=attended)
        scores = self.run(probe)
        influence = _gradients(self.prediction.log_odds(scores), attended)
        similarity = [
            _row_similarity(states, self.prediction.answer, layer.attend, num_heads)
            for states, layer in zip(probe.query_key_states, self.weights.layers, strict=True)
        ]
        row = torch.stack(similarity)
        rows = AttentionRows(
            lift=row / row.mean(-1, keepdim=True), influence=torch.stack(influence).mT
        )
        return scores.detach(), rows

    def hop_gradients(self, strength: float) -> tuple[Float[Tensor, " n"], Float[Tensor, "S E"]]:
        """See ``Tracer.hop_gradients``."""
        like, num_edges = self.weights.score.bias, len(self.edges.message)
        # Of the two streams the value stream alone gets weights: queries and keys decide what is
        # attended to, which moves an answer far less (decision 0014).
        by_layer = [
            [like.new_full((num_edges,), strength, requires_grad=True) for _ in layer.value.hops]
            for layer in self.weights.layers
        ]
        scores = self.run(Probe(message_weights=by_layer))
        weights = [of_hop for of_layer in by_layer for of_hop in of_layer]
        gradients = _gradients(self.prediction.log_odds(scores), weights)
        no_hops = scores.new_zeros(0, num_edges)
        return scores.detach(), torch.stack(gradients) if gradients else no_hops


def _gradients(log_odds: Float[Tensor, ""], weights: Sequence[Tensor]) -> list[Tensor]:
    if not weights:
        return []
    return list(torch.autograd.grad(log_odds, weights, allow_unused=True, materialize_grads=True))


def _row_similarity(
    query_key_states: Float[Tensor, "V D"], entity: int, weights: AttendWeights, num_heads: int
) -> Float[Tensor, "H V"]:
    """Returns kappa(q_u, k_w) of one entity u with every entity w, per head."""
    q, k = queries_and_keys(query_key_states[None], weights, num_heads)
    return kappa(q[:, :, entity : entity + 1], k, weights)[0, :, 0]
