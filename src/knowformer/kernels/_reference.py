"""Obvious torch: defines what is correct, runs in float32 and float64.

Everything is a function of one query at a time: no sum crosses the batch, so a query's result does
not depend on its batch mates.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag, layer_norm

from knowformer.kernels._attention import affine, gather_attended
from knowformer.kernels._operands import (
    NO_HEAD,
    AttendWeights,
    Dropout,
    Edges,
    HopWeights,
    InputWeights,
    QueryView,
    ScoreWeights,
    Similarity,
    StreamWeights,
)


class ReferenceBackend:
    """The backend that the others are measured against."""

    def is_batch_invariant(self, *, width: int, num_heads: int, similarity: Similarity) -> bool:
        """Never: BLAS picks its routine by the size of the whole batch."""
        del width, num_heads, similarity
        return False

    def across(self, parallel_map: Callable[..., Any]) -> "ReferenceBackend":
        """See ``Backend.across``: torch has threads of its own."""
        del parallel_map
        return self

    def hop(
        self,
        states: Float[Tensor, "N D"],
        relation_vectors: Float[Tensor, "B R D"],
        view: QueryView,
        weights: HopWeights,
        *,
        message_weights: Float[Tensor, " E"] | None = None,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.hop``."""
        if not view.is_whole:
            single = enumerate(view.one_by_one())
            return _joined(
                ReferenceBackend.hop(
                    self, states[at], relation_vectors[b : b + 1], own, weights,
                    message_weights=_of_query(message_weights, view, b),
                )
                for b, (own, at) in single
            )  # fmt: skip
        vectors, table = weights.vectors, _as_table(states, view)
        sums = sum_messages(table, relation_vectors, view.edges, message_weights)
        update = vectors[0] * table + sums
        for number, weight in enumerate(weights.matrices):
            update = affine(torch.relu(update) if number else update, weight, vectors[1 + number])
        if weights.norm:
            update = table + layer_norm(update, update.shape[-1:], vectors[-2], vectors[-1])
        return update.flatten(0, 1)

    def stream_input(
        self,
        states: Float[Tensor, "N D"] | None,
        weights: InputWeights,
        view: QueryView,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.stream_input``."""
        if not view.is_whole:
            starts = view.starts.tolist()
            return _joined(
                ReferenceBackend.stream_input(
                    self,
                    None if states is None else states[at],
                    weights.of_entities(start, own.num_rows),
                    own,
                )
                for start, (own, at) in zip(starts, view.one_by_one(), strict=True)
            )
        num_entities = view.edges.num_entities
        hidden = weights.extra.expand(len(view), num_entities, -1)
        if states is not None:
            hidden = hidden + _as_table(states, view) @ weights.matrices[0]
        if weights.marks_head:
            is_head = torch.arange(num_entities) == view.heads[:, None]
            hidden = hidden + is_head[..., None] * weights.vectors[1]
        return affine(torch.relu(hidden), weights.matrices[1], weights.vectors[0]).flatten(0, 1)

    def stream(
        self,
        states: Float[Tensor, "N D"] | None,
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "B R D"]],
        view: QueryView,
        *,
        message_weights: Sequence[Float[Tensor, " E"]] | None = None,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.stream``."""
        weighed = message_weights or [None] * len(weights.hops)
        states = self.stream_input(states, weights.start, view)
        for hop, vectors, each in zip(weights.hops, relation_vectors, weighed, strict=True):
            states = self.hop(states, vectors, view, hop, message_weights=each)
        return states

    def stream_background(
        self,
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        edges: Edges,
    ) -> Sequence[Float[Tensor, "V D"]]:
        """See ``Backend.stream_background``."""
        view = QueryView.whole(edges, torch.tensor([NO_HEAD]))
        states = [self.stream_input(None, weights.start, view)]
        for hop, vectors in zip(weights.hops, relation_vectors, strict=True):
            states.append(self.hop(states[-1], vectors, view, hop))
        return states

    def stream_near_heads(
        self,
        background: Sequence[Float[Tensor, "V D"]],
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        view: QueryView,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.stream_near_heads``: everything is computed."""
        del background
        each = [vectors.expand(len(view), -1, -1) for vectors in relation_vectors]
        return self.stream(None, weights, each, view)

    def attend(
        self,
        states: Float[Tensor, "N D"],
        query_key_states: Float[Tensor, "N D"],
        value_states: Float[Tensor, "N D"],
        weights: AttendWeights,
        view: QueryView,
        *,
        num_heads: int,
        dropout: Dropout | None,
        attended: Float[Tensor, "N H"] | None = None,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.attend``."""
        whole = [(view, slice(0, view.num_rows))]
        gathered = _joined(
            gather_attended(
                _as_table(query_key_states[at], own),
                _as_table(value_states[at], own),
                weights,
                num_heads,
                None if attended is None else attended[at].view(len(own), -1, num_heads),
            ).flatten(0, 1)
            for own, at in (whole if view.is_whole else view.one_by_one())
        )
        return self.finish_layer(states, gathered, weights, dropout=dropout)

    def finish_layer(
        self,
        states: Float[Tensor, "N D"],
        gathered: Float[Tensor, "N D"],
        weights: AttendWeights,
        *,
        dropout: Dropout | None,
    ) -> Float[Tensor, "N D"]:
        """Residual, norm, feed-forward, residual, norm (eq. 11)."""
        shape = states.shape[-1:]
        gamma1, beta1, b1, b2, gamma2, beta2 = weights.vectors[-6:]
        expand, contract = weights.matrices[-2:]
        a = layer_norm(states + gathered, shape, gamma1, beta1)
        hidden = torch.relu(affine(a, expand, b1))
        if dropout is not None:
            hidden = hidden * (dropout.random_bytes >= dropout.threshold) * dropout.scale
        return layer_norm(a + affine(hidden, contract, b2), shape, gamma2, beta2)

    def score(self, states: Float[Tensor, "N D"], weights: ScoreWeights) -> Float[Tensor, " N"]:
        """See ``Backend.score``."""
        hidden = torch.relu(affine(states, weights.matrices[0], weights.vectors[0]))
        return torch.nn.functional.linear(hidden, weights.vectors[1:], weights.bias).squeeze(-1)


def _as_table(states: Float[Tensor, "N D"], view: QueryView) -> Float[Tensor, "B V D"]:
    return states.view(len(view), -1, states.shape[-1])


def _of_query(
    message_weights: Float[Tensor, " E"] | None, view: QueryView, query: int
) -> Float[Tensor, " e"] | None:
    """Returns the weights on the edges of one query's subgraph."""
    if message_weights is None:
        return None
    start, count = view.starts[query], view.offsets[query + 1] - view.offsets[query]
    return message_weights[view.edges.offsets[start] : view.edges.offsets[start + count]]


def _joined(segments: Any) -> Float[Tensor, "N D"]:
    tensors = list(segments)
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


def sum_messages(
    states: Float[Tensor, "B V D"],
    relation_vectors: Float[Tensor, "B R D"],
    edges: Edges,
    message_weights: Float[Tensor, " E"] | None = None,
) -> Float[Tensor, "B V D"]:
    """For each receiver u, the sum over edges r(v, u) of states[v] * relation_vectors[r].

    Messages are made once per distinct (sender, relation), then summed per receiver. Weights on
    them are the same for every query.
    """
    if len(edges.message) == 0:
        return torch.zeros_like(states)
    batch_size, num_entities, width = states.shape
    senders = states.transpose(0, 1).index_select(0, edges.message_sender)
    relations = relation_vectors.transpose(0, 1).index_select(0, edges.message_relation)
    messages = (senders * relations).flatten(1)
    if message_weights is None:
        sums = embedding_bag(
            edges.message, messages, edges.offsets, mode="sum", include_last_offset=True
        )
    else:
        sums = _WeightedSums.apply(messages, message_weights, edges)
    return sums.view(num_entities, batch_size, width).transpose(0, 1)


class _WeightedSums(torch.autograd.Function):
    """For each receiver, the sum of its messages by weight; no tensor of E times D is made.

    Differentiable by hand: torch sorts all edges anew to do it, which takes many times as long.
    """

    CHUNK = 2**14  # edges whose messages fit into the cache together

    @staticmethod
    def forward(
        ctx: Any, messages: Float[Tensor, "M D"], weights: Float[Tensor, " E"], edges: Edges
    ) -> Float[Tensor, "V D"]:
        ctx.save_for_backward(messages, weights)
        ctx.edges = edges
        return _sum_rows(messages, edges.message, edges.offsets, weights)

    @staticmethod
    def backward(
        ctx: Any, *grad_outputs: Float[Tensor, "V D"]
    ) -> tuple[Float[Tensor, "M D"], Float[Tensor, " E"], None]:
        gradient = grad_outputs[0]
        messages, weights = ctx.saved_tensors
        edges: Edges = ctx.edges
        of_messages = _sum_rows(
            gradient, edges.receiver, edges.message_offsets, weights[edges.by_message]
        )
        receiver = torch.repeat_interleave(edges.offsets.diff())
        of_weights = torch.empty_like(weights)
        for first in range(0, len(weights), _WeightedSums.CHUNK):
            at = slice(first, first + _WeightedSums.CHUNK)
            at_receiver = gradient.index_select(0, receiver[at])
            message = messages.index_select(0, edges.message[at])
            of_weights[at] = (at_receiver * message).sum(-1)
        return of_messages, of_weights, None


def _sum_rows(
    rows: Float[Tensor, "G D"],
    chosen: Int[Tensor, " E"],
    offsets: Int[Tensor, " S"],
    weights: Float[Tensor, " E"],
) -> Float[Tensor, "S-1 D"]:
    """Returns the weighted sum of the chosen rows, group by group."""
    return embedding_bag(
        chosen, rows, offsets, mode="sum", include_last_offset=True, per_sample_weights=weights
    )
