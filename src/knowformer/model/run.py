"""The one way to run the model: packed weights, a view and relation vectors in, scores out.

``KnowFormer.forward``, training, scoring and explanations all call ``run``; it reads like
algorithm 1 of the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from knowformer.kernels.interface import Backend, Dropout, QueryView
from knowformer.model.weights import LayerVectors, LayerWeights, ModelWeights, RelationVectors


class FirstStates(NamedTuple):
    """Streams of the first layer that are there already; see ``model.shared_work``."""

    query_key: Float[Tensor, "N D"] | None = None
    value: Float[Tensor, "N D"] | None = None


@dataclass
class Probe:
    """Looks into a run: weights on what flows through it, and a record of what was attended to."""

    message_weights: Sequence[Sequence[Float[Tensor, " E"]]] | None = None
    """Of every message, for each layer and each hop of its value stream; None: all are 1."""
    attended: Sequence[Float[Tensor, "N H"]] | None = None
    """Of every entity as others attend to it, for each layer and head; None: all are 1."""
    query_key_states: list[Float[Tensor, "N D"]] = field(default_factory=list[Tensor])
    """What queries and keys of each layer are linear maps of: filled by the run."""


def run(
    weights: ModelWeights,
    view: QueryView,
    vectors: RelationVectors,
    backend: Backend,
    *,
    first: FirstStates | None = None,
    dropout: np.random.Generator | None = None,
    probe: Probe | None = None,
) -> Float[Tensor, " N"]:
    """Returns the score of every row of the view: logits, higher is better.

    Args:
        weights: what ``KnowFormer.pack`` returns.
        view: what the queries see.
        vectors: relation vectors of every query.
        backend: the kernels.
        first: streams of the first layer that are there already.
        dropout: draws what is dropped; without it nothing is.
        probe: looks into the run.
    """
    states: Tensor | None = None  # all zero; no need to make them
    for number, (layer, of_layer) in enumerate(zip(weights.layers, vectors, strict=True)):
        given = first if number == 0 and first is not None else FirstStates()
        value_states, query_key_states = _streams(
            states, layer, of_layer, view, backend, given, _message_weights(probe, number)
        )
        drop = _draw_dropout(value_states, weights.dropout_threshold, dropout)
        residual = torch.zeros_like(value_states) if states is None else states
        if not weights.num_heads:
            states = backend.finish_layer(residual, value_states, layer.attend, dropout=drop)
            continue
        if query_key_states is None:
            query_key_states = residual
        if weights.centres_query_keys:
            query_key_states = centred(query_key_states, view)
        if probe is not None:
            probe.query_key_states.append(query_key_states.detach())
        states = backend.attend(
            residual, query_key_states, value_states, layer.attend, view,
            num_heads=weights.num_heads, dropout=drop, attended=_attended(probe, number),
        )  # fmt: skip
    assert states is not None
    return backend.score(states, weights.score)


def _streams(
    states: Float[Tensor, "N D"] | None,
    layer: LayerWeights,
    vectors: LayerVectors,
    view: QueryView,
    backend: Backend,
    given: FirstStates,
    message_weights: Sequence[Float[Tensor, " E"]] | None,
) -> tuple[Float[Tensor, "N D"], Float[Tensor, "N D"] | None]:
    """Returns value states, the paper's z^, and query-key states, its z~, if there is a stream."""
    value = given.value
    if value is None:
        value = backend.stream(
            states, layer.value, vectors.value, view, message_weights=message_weights
        )
    query_key = given.query_key
    if query_key is None and layer.query_key is not None:
        query_key = backend.stream(states, layer.query_key, query_key_vectors(layer, vectors), view)
    return value, query_key


def centred(states: Float[Tensor, "N D"], view: QueryView) -> Float[Tensor, "N D"]:
    """Returns states less their mean over the rows of their query.

    Queries and keys are linear maps of these, so without a bias they are centred as well.
    """
    counts = view.offsets.diff()
    of_query = torch.repeat_interleave(torch.arange(len(view)), counts)
    sums = states.new_zeros(len(view), states.shape[1]).index_add(0, of_query, states)
    return states - (sums / counts[:, None])[of_query]


def query_key_vectors(layer: LayerWeights, vectors: LayerVectors) -> list[Float[Tensor, "B R D"]]:
    """Returns the relation vectors of each hop of the query stream: one for all."""
    num_hops = 0 if layer.query_key is None else len(layer.query_key.hops)
    return [] if vectors.query_key is None else [vectors.query_key] * num_hops


def _message_weights(probe: Probe | None, layer: int) -> Sequence[Float[Tensor, " E"]] | None:
    return None if probe is None or probe.message_weights is None else probe.message_weights[layer]


def _attended(probe: Probe | None, layer: int) -> Float[Tensor, "N H"] | None:
    return None if probe is None or probe.attended is None else probe.attended[layer]


def _draw_dropout(
    like: Float[Tensor, "N D"], threshold: int, random: np.random.Generator | None
) -> Dropout | None:
    """Draws which activations stay; a byte each, so the rate is a multiple of 1/256."""
    if random is None or threshold == 0:
        return None
    drawn = random.bit_generator.random_raw(-(-like.numel() // 8)).view(np.uint8)
    return Dropout(torch.from_numpy(drawn)[: like.numel()].view(like.shape), threshold)
