"""The model with a weight on every message and on every entity that is attended to.

With all weights at one the scores are the model's own. Their gradients say what each message and
each attended entity does for an answer; a weight of zero takes it away. The pass is the model's
own: only the sum of a hop and the sums of the attention are written out again.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag, layer_norm

from knowformer.errors import DataError
from knowformer.explanation.find.attention_rows import AttentionRows, gather, row_similarity
from knowformer.kernels.interface import (
    AttendWeights,
    Backend,
    Dropout,
    Edges,
    HopWeights,
    InputWeights,
    ScoreWeights,
    Similarity,
)
from knowformer.model.knowformer import KnowFormer
from knowformer.model.weights import ModelWeights, RelationVectors, SharedStates


@dataclass(frozen=True)
class Prediction:
    """An answer to a query: what is explained. In ids; the relation may be an inverse."""

    head: int
    relation: int
    answer: int
    rivals: Bool[Tensor, " V"]  # candidates that are not known answers, without the answer

    def log_odds(self, scores: Float[Tensor, " V"]) -> Float[Tensor, ""]:
        """The answer's log-odds against its rivals: its score less their log-sum-exp."""
        return scores[self.answer] - scores[self.rivals].logsumexp(0)


def find_rivals(known: Bool[Tensor, " V"], answer: int) -> Bool[Tensor, " V"]:
    """Returns whom an answer competes with: all that are not known, or all if all are known."""
    if len(known) < 2:
        raise DataError("Expected at least two entities to explain an answer, got a graph of one.")
    rivals = ~known if bool((~known).sum() > (not known[answer])) else torch.ones_like(known)
    rivals[answer] = False
    return rivals


@dataclass(frozen=True)
class Trace:
    """What each message and each attended entity did for an answer's log-odds."""

    scores: Float[Tensor, " V"]
    hops: Float[Tensor, "S E"]  # of each edge's message in each hop of the value streams
    attention: AttentionRows | None  # None: the model has no attention


_CHUNK = 2**14  # edges whose messages fit into the cache together
NUM_POINTS = 4  # more change the order of evidence no longer


class Tracer:
    """A model bound to its noise: scores, and gradients, of one prediction at a time."""

    def __init__(self, model: KnowFormer, identity_noise: Float[Tensor, "L V N"]) -> None:
        self.model = model
        self._noise = identity_noise

    def score(
        self,
        prediction: Prediction,
        edges: Edges,
        attended: Float[Tensor, " V"] | None = None,
    ) -> Float[Tensor, " V"]:
        """Returns the scores of all entities.

        Args:
            prediction: the query and its answer.
            edges: the graph's edges, or those that are left of them.
            attended: a weight on each entity as others attend to it, in every layer and head.
        """
        model = self.model
        if attended is not None:
            backend = _TracingBackend(model.backend, prediction.answer, attended=attended)
            model = _with_backend(model, backend)
        head, relation = torch.tensor([prediction.head]), torch.tensor([prediction.relation])
        with torch.inference_mode():
            return model(edges, head, relation, identity_noise=self._noise)[0]

    def trace(self, prediction: Prediction, edges: Edges) -> Trace:
        """Runs the model forwards and backwards from the answer's log-odds.

        Gradients of messages are means over all messages weakened alike, from nothing to whole: at
        the whole graph alone an answer that is certain has next to no gradient, however much it
        owes to a fact (integrated gradients, Sundararajan et al. 2017).
        """
        prepared = self._prepare(prediction, edges)
        scores, rows = prepared.attention()
        points = [(number + 0.5) / NUM_POINTS for number in range(NUM_POINTS)]
        hops = prepared.hop_gradients(points[0])[1]
        for strength in points[1:]:
            hops += prepared.hop_gradients(strength)[1]
        return Trace(scores=scores, hops=hops / NUM_POINTS, attention=rows)

    def attention(self, prediction: Prediction, edges: Edges) -> AttentionRows | None:
        """Returns what the answer attends to, without a look at messages: a fifth of the work."""
        return self._prepare(prediction, edges).attention()[1]

    def hop_gradients(
        self, prediction: Prediction, edges: Edges, *, strength: float = 1.0
    ) -> tuple[Float[Tensor, " V"], Float[Tensor, "S E"]]:
        """Returns scores with all messages weakened, and the gradient of each message there."""
        return self._prepare(prediction, edges).hop_gradients(strength)

    def _prepare(self, prediction: Prediction, edges: Edges) -> "_Prepared":
        relation = torch.tensor([prediction.relation])
        with torch.no_grad():
            weights = self.model.weights(self._noise)
            vectors = self.model.steady_relation_vectors(relation)
            shared = self.model.share(vectors, weights, edges)
        return _Prepared(self.model, prediction, edges, weights, shared)


@dataclass(frozen=True)
class _Prepared:
    """What all passes of one prediction have in common."""

    model: KnowFormer
    prediction: Prediction
    edges: Edges
    weights: ModelWeights
    shared: SharedStates

    def run(self, backend: "_TracingBackend") -> Float[Tensor, " V"]:
        """Scores with weights on messages, or on what is attended to."""
        model = _with_backend(self.model, backend)
        head = torch.tensor([self.prediction.head])
        return model.score_entities(self.edges, head, self.weights, self.shared)[0]

    def attention(self) -> tuple[Float[Tensor, " V"], AttentionRows | None]:
        """Returns scores, and the answer's rows of the attention."""
        backend = _TracingBackend(self.model.backend, self.prediction.answer, traces_attention=True)
        scores = self.run(backend)
        influence = _gradients(self.prediction.log_odds(scores), backend.attended)
        return scores.detach(), _attention(backend.similarity, influence)

    def hop_gradients(self, strength: float) -> tuple[Float[Tensor, " V"], Float[Tensor, "S E"]]:
        """See ``Tracer.hop_gradients``."""
        backend = _TracingBackend(
            self.model.backend,
            self.prediction.answer,
            vectors=self.shared.vectors,
            strength=strength,
        )
        scores = self.run(backend)
        found = _gradients(self.prediction.log_odds(scores), backend.value_hops)
        none = scores.new_zeros(0, len(self.edges.message))
        return scores.detach(), torch.stack(found) if found else none


def _gradients(of: Float[Tensor, ""], weights: list[Tensor]) -> list[Tensor]:
    if not weights:
        return []
    return list(torch.autograd.grad(of, weights, allow_unused=True, materialize_grads=True))


def _with_backend(model: KnowFormer, backend: Backend) -> KnowFormer:
    """Returns the same model on other kernels; weights are shared, the model itself untouched."""
    other = copy.copy(model)
    other.backend = backend
    return other


def _attention(
    similarity: list[Float[Tensor, "H V"]], influence: list[Float[Tensor, "H V"]]
) -> AttentionRows | None:
    if not influence:
        return None
    kappa = torch.stack(similarity)
    return AttentionRows(
        lift=kappa / kappa.mean(-1, keepdim=True), influence=torch.stack(influence)
    )


class _TracingBackend:
    """A backend around another: messages, or what is attended to, carry weights."""

    def __init__(
        self,
        kernels: Backend,
        answer: int,
        *,
        vectors: RelationVectors | None = None,
        strength: float = 1.0,
        traces_attention: bool = False,
        attended: Float[Tensor, " V"] | None = None,
    ) -> None:
        self._kernels = kernels
        self._traces_attention = traces_attention
        self._answer = answer
        self._strength = strength
        self._attended = attended
        # A hop is known by its relation vectors: those of value hops arrive as they were made.
        self._of_value_hops: set[int] = set()
        if vectors is not None:
            self._of_value_hops = {id(each) for layer in vectors for each in layer.value}
        self.value_hops: list[Tensor] = []
        self.attended: list[Tensor] = []
        self.similarity: list[Tensor] = []

    def is_batch_invariant(self, *, width: int, num_heads: int, similarity: Similarity) -> bool:
        """See ``Backend.is_batch_invariant``."""
        return self._kernels.is_batch_invariant(
            width=width, num_heads=num_heads, similarity=similarity
        )

    def hop(
        self,
        states: Float[Tensor, "1 V D"],
        relation_vectors: Float[Tensor, "1 R D"],
        edges: Edges,
        weights: HopWeights,
    ) -> Float[Tensor, "1 V D"]:
        """See ``Backend.hop``; each message is multiplied by a weight."""
        # Of the two streams only that of values is weighed: queries and keys decide what is
        # attended to, which moves an answer far less (decision 0014).
        if id(relation_vectors) not in self._of_value_hops:
            return self._kernels.hop(states, relation_vectors, edges, weights)
        of_messages = states.new_full((len(edges.message),), self._strength, requires_grad=True)
        self.value_hops.append(of_messages)
        senders = states[0].index_select(0, edges.message_sender)
        relations = relation_vectors[0].detach().index_select(0, edges.message_relation)
        sums = _WeightedSums.apply(senders * relations, of_messages, edges)
        rows = weights.rows
        update = rows[0] * states + sums
        for number, weight in enumerate(weights.maps):
            update = (torch.relu(update) if number else update) @ weight + rows[1 + number]
        if not weights.norm:
            return update
        return states + layer_norm(update, update.shape[-1:], rows[-2], rows[-1])

    def stream_input(
        self,
        states: Float[Tensor, "1 V D"] | None,
        extra: Float[Tensor, "V_or_1 D"],
        weights: InputWeights,
        *,
        heads: Int[Tensor, " 1"] | None,
        num_queries: int,
        num_entities: int,
    ) -> Float[Tensor, "1 V D"]:
        """See ``Backend.stream_input``."""
        return self._kernels.stream_input(
            states, extra, weights, heads=heads, num_queries=num_queries, num_entities=num_entities
        )

    def spread(
        self,
        background: Sequence[Float[Tensor, "1 V D"]],
        extra: Float[Tensor, "1 D"],
        start: InputWeights,
        hops: Sequence[HopWeights],
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        edges: Edges,
        *,
        heads: Int[Tensor, " 1"],
    ) -> Float[Tensor, "1 V D"]:
        """See ``Backend.spread``; with weights on messages everything must be computed."""
        del background
        num_entities = edges.num_entities
        states = self.stream_input(
            None, extra, start, heads=heads, num_queries=1, num_entities=num_entities
        )
        for weights, vectors in zip(hops, relation_vectors, strict=True):
            states = self.hop(states, vectors, edges, weights)
        return states

    def attend(
        self,
        states: Float[Tensor, "1 V D"],
        query_key_states: Float[Tensor, "1 V D"],
        value_states: Float[Tensor, "1 V D"],
        weights: AttendWeights,
        *,
        num_heads: int,
        dropout: Dropout | None,
    ) -> Float[Tensor, "1 V D"]:
        """See ``Backend.attend``; each attended entity counts by a weight, if weights matter."""
        if self._attended is None and not self._traces_attention:
            return self._kernels.attend(
                states,
                query_key_states,
                value_states,
                weights,
                num_heads=num_heads,
                dropout=dropout,
            )
        attended = value_states.new_ones(num_heads, value_states.shape[1])
        if self._attended is None:
            self.attended.append(attended.requires_grad_())
            with torch.no_grad():
                row = row_similarity(query_key_states, self._answer, weights, num_heads)
            self.similarity.append(row)
        else:
            attended = attended * self._attended.to(attended.dtype)
        gathered = gather(query_key_states, value_states, attended, weights)
        return self._kernels.finish_layer(states, gathered, weights, dropout=dropout)

    def finish_layer(
        self,
        states: Float[Tensor, "1 V D"],
        gathered: Float[Tensor, "1 V D"],
        weights: AttendWeights,
        *,
        dropout: Dropout | None,
    ) -> Float[Tensor, "1 V D"]:
        """See ``Backend.finish_layer``."""
        return self._kernels.finish_layer(states, gathered, weights, dropout=dropout)

    def score(self, states: Float[Tensor, "1 V D"], weights: ScoreWeights) -> Float[Tensor, "1 V"]:
        """See ``Backend.score``."""
        return self._kernels.score(states, weights)


class _WeightedSums(torch.autograd.Function):
    """For each receiver, the sum of its messages by weight; no tensor of E times D is made.

    Differentiable by hand: torch sorts all edges anew to do it, which takes many times as long.
    """

    @staticmethod
    def forward(
        ctx: Any, messages: Float[Tensor, "M D"], weights: Float[Tensor, " E"], edges: Edges
    ) -> Float[Tensor, "V D"]:
        ctx.save_for_backward(messages, weights)
        ctx.edges = edges
        return _sum_rows(messages, edges.message, edges.offsets, weights)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, gradient: Float[Tensor, "V D"]
    ) -> tuple[Float[Tensor, "M D"], Float[Tensor, " E"], None]:
        messages, weights = ctx.saved_tensors
        edges: Edges = ctx.edges
        of_messages = _sum_rows(
            gradient, edges.receiver, edges.message_offsets, weights[edges.by_message]
        )
        receiver = torch.repeat_interleave(edges.offsets.diff())
        of_weights = torch.empty_like(weights)
        for first in range(0, len(weights), _CHUNK):
            part = slice(first, first + _CHUNK)
            at_receiver = gradient.index_select(0, receiver[part])
            message = messages.index_select(0, edges.message[part])
            of_weights[part] = (at_receiver * message).sum(-1)
        return of_messages, of_weights, None


def _sum_rows(
    rows: Float[Tensor, "N D"],
    chosen: Int[Tensor, " E"],
    offsets: Int[Tensor, " G"],
    weights: Float[Tensor, " E"],
) -> Float[Tensor, "G-1 D"]:
    """Returns the weighted sum of the chosen rows, group by group."""
    if len(chosen) == 0:
        return rows.new_zeros(len(offsets) - 1, rows.shape[1])
    return embedding_bag(
        chosen,
        rows,
        offsets,
        mode="sum",
        include_last_offset=True,
        per_sample_weights=weights,
    )
