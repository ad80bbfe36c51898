"""Gradients of a batch, micro-batch by micro-batch, on several threads and processes.

What micro-batches have in common is made once for the batch and differentiated once: packed
weights, relation vectors (their weights are most of a model's), and, where queries share a graph,
the first layer's query stream of each distinct query. Micro-batches see it as leaves. Their
gradients are summed in the order of the micro-batches, whichever ended first, so the bits are the
same for any number of threads, and of processes. The derivation is in docs/concepts/gradients.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.graph.relation_graph import RelationGraph
from knowformer.kernels.interface import Backend, QueryView
from knowformer.model.knowformer import KnowFormer
from knowformer.model.run import FirstStates, query_key_vectors
from knowformer.model.shared_work import DistinctQueries, add_segments, take_segments
from knowformer.model.weights import (
    LayerVectors,
    ModelWeights,
    RelationVectors,
    tensors_in,
    with_noise_inputs,
    with_tensors,
)
from knowformer.training.distributed import Pool

Tree = TypeVar("Tree")


@dataclass(frozen=True)
class MicroBatch:
    """Some queries of a batch, with all that ``model.run.run`` takes to score them."""

    number: int
    first: int  # its queries are first .. last of the batch
    last: int
    view: QueryView
    weights: ModelWeights
    vectors: RelationVectors
    first_states: FirstStates


MicroBatchLoss = Callable[[MicroBatch], Float[Tensor, ""]]


def accumulate_gradients(
    model: KnowFormer,
    view: QueryView,
    relations: Int[Tensor, " B"],
    identity_noise: Float[Tensor, "L V noise"],
    loss: MicroBatchLoss,
    *,
    size: int,
    workers: Pool,
    relation_graph: RelationGraph | None = None,
    permutation: Int[Tensor, " R"] | None = None,
) -> float:
    """Adds the gradients of a batch's loss to the model's, and returns the loss.

    Args:
        model: the model.
        view: what the queries see; best in an order that puts equal relations side by side.
        relations: the queries' relations.
        identity_noise: of the view's entities.
        loss: what a micro-batch adds to the loss.
        size: queries per micro-batch.
        workers: the threads, of this process or of several.
        relation_graph: what the encoder reads; see ``KnowFormer.relation_graph``.
        permutation: of relations; see ``RelationEncoder``.
    """
    distinct_relations: Tensor
    distinct_relations, row_of_query = torch.unique(relations, return_inverse=True)
    apart = view.are_apart and len(view) > 1
    made = (
        model.pack(identity_noise[:, :0] if apart else identity_noise),
        model.encoder(distinct_relations, relation_graph, permutation=permutation),
    )
    leaves = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in tensors_in(made)]
    weights, vectors = with_tensors(made, leaves)
    of_weights = _differentiable(weights)
    start_of: _Starts = (
        _StartsApart(weights, model.noise_inputs(identity_noise), view)
        if apart
        else _SharedStarts(model.backend, weights, vectors[0], view, relations, distinct_relations,
                           size, workers)
    )  # fmt: skip

    num_vectors = len(tensors_in(vectors))

    def differentiate(first: int) -> Sequence[Tensor]:
        last = min(first + size, len(view))
        chosen = _leaves(vectors, row_of_query[first:last])
        start, own = start_of.queries(first, last)
        part = MicroBatch(
            first // size, first, last, start.view, start.weights, chosen, start.states
        )
        value = loss(part)
        flat, grads = _gradients(value, of_weights, [*tensors_in(chosen), *own])
        return [value.detach(), flat, *grads]

    total = torch.zeros(sum(tensor.numel() for tensor in of_weights), dtype=leaves[0].dtype)
    d_vectors = [torch.zeros_like(tensor) for tensor in tensors_in(vectors)]
    loss_value = 0.0
    firsts = range(0, len(view), size)
    for first, result in zip(firsts, workers.imap(differentiate, firsts), strict=True):
        value, flat, *grads = result
        loss_value += value.item()
        total += flat
        _add_rows(d_vectors, row_of_query[first : first + size], grads[:num_vectors])
        start_of.add(first, min(first + size, len(view)), grads[num_vectors:])
    start_of.pull_back(total, d_vectors, of_weights)
    pieces = total.split([tensor.numel() for tensor in of_weights])
    found = [piece.view_as(tensor) for tensor, piece in zip(of_weights, pieces, strict=True)]
    torch.autograd.backward(_differentiable(made), [*found, *d_vectors])
    return loss_value


class _Start(NamedTuple):
    """What a micro-batch starts from."""

    view: QueryView
    weights: ModelWeights
    states: FirstStates


class _Starts(Protocol):
    """Where micro-batches start, and what their gradients there lead back to."""

    def queries(self, first: int, last: int) -> tuple[_Start, Sequence[Tensor]]:
        """Returns the start of some queries, and the leaves in it that are theirs alone."""
        ...

    def add(self, first: int, last: int, gradients: Sequence[Tensor]) -> None:
        """Adds a micro-batch's gradients of its leaves."""
        ...

    def pull_back(self, total: Tensor, d_vectors: list[Tensor], of_weights: list[Tensor]) -> None:
        """Adds what these gradients mean for weights and relation vectors."""
        ...


class _StartsApart:
    """Each query has a subgraph of its own: nothing is shared, and noise belongs to one query."""

    def __init__(
        self, weights: ModelWeights, noise_inputs: Sequence[Tensor | None], view: QueryView
    ) -> None:
        self._weights = weights
        self._view = view
        self._inputs = noise_inputs
        self._made = [tensor for tensor in noise_inputs if tensor is not None]
        # Entities of queries that were left out of the batch get no gradient.
        self._gradients = [torch.zeros_like(tensor) for tensor in self._made]

    def queries(self, first: int, last: int) -> tuple[_Start, Sequence[Tensor]]:
        view, entities = self._view.queries_apart(first, last)
        inputs = [
            None if tensor is None else tensor.detach()[entities].requires_grad_()
            for tensor in self._inputs
        ]
        start = _Start(view, with_noise_inputs(self._weights, inputs), FirstStates())
        return start, [tensor for tensor in inputs if tensor is not None]

    def add(self, first: int, last: int, gradients: Sequence[Tensor]) -> None:
        entities = self._view.entities_apart(first, last)
        for whole, part in zip(self._gradients, gradients, strict=True):
            whole[entities] = part

    def pull_back(self, total: Tensor, d_vectors: list[Tensor], of_weights: list[Tensor]) -> None:
        del total, d_vectors, of_weights  # noise leads to parameters alone
        if self._made:
            torch.autograd.backward(self._made, self._gradients)


class _SharedStarts:
    """The first layer's query stream of every distinct query, in micro-batches of its own."""

    def __init__(
        self,
        backend: Backend,
        weights: ModelWeights,
        vectors: LayerVectors,
        view: QueryView,
        relations: Int[Tensor, " B"],
        distinct_relations: Int[Tensor, " Q"],
        size: int,
        workers: Pool,
    ) -> None:
        self._workers = workers
        self._weights = weights
        self._view = view
        self._states: Tensor | None = None
        layer = weights.layers[0]
        stream = layer.query_key
        if stream is None:
            return
        self._distinct = DistinctQueries.among(view, relations)
        self._rows = torch.searchsorted(distinct_relations, self._distinct.relations)
        self._ranges = [
            (start, min(start + size, len(self._rows))) for start in range(0, len(self._rows), size)
        ]

        # Of the ranges that fall to this process, which finishes them as well.
        self._begun: dict[int, tuple[Sequence[Tensor], Tensor]] = {}

        def begin(number: int) -> Sequence[Tensor]:
            at = self._ranges[number]
            chosen = _leaves(LayerVectors(vectors.query_key, ()), self._rows[slice(*at)])
            part = self._distinct.view.queries(*at)
            states = backend.stream(None, stream, query_key_vectors(layer, chosen), part)
            self._begun[number] = tensors_in(chosen), states
            return [states.detach()]

        self._states = torch.cat([s for (s,) in workers.imap(begin, range(len(self._ranges)))])
        self._d_states = torch.zeros_like(self._states)

    def queries(self, first: int, last: int) -> tuple[_Start, Sequence[Tensor]]:
        view = self._view.queries(first, last)
        if self._states is None:
            return _Start(view, self._weights, FirstStates()), []
        leaf = take_segments(self._states, self._segments(first, last)).requires_grad_()
        return _Start(view, self._weights, FirstStates(query_key=leaf)), [leaf]

    def add(self, first: int, last: int, gradients: Sequence[Tensor]) -> None:
        for gradient in gradients:
            add_segments(self._d_states, self._segments(first, last), gradient)

    def _segments(self, first: int, last: int) -> list[slice]:
        return self._distinct.segments(torch.arange(first, last))

    def pull_back(self, total: Tensor, d_vectors: list[Tensor], of_weights: list[Tensor]) -> None:
        if self._states is None:
            return
        bounds: list[int] = self._distinct.view.offsets.tolist()

        def finish(number: int) -> Sequence[Tensor]:
            start, end = self._ranges[number]
            chosen, states = self._begun[number]
            above = self._d_states[bounds[start] : bounds[end]]
            flat, grads = _gradients(states, of_weights, chosen, above)
            return [flat, *grads]

        results = self._workers.imap(finish, range(len(self._ranges)))
        for at, (flat, *grads) in zip(self._ranges, results, strict=True):
            total += flat
            # The query stream's vectors of the first layer come first of all, if it has hops.
            _add_rows(d_vectors[: len(grads)], self._rows[slice(*at)], grads)


def _differentiable(tree: object) -> list[Tensor]:
    return [tensor for tensor in tensors_in(tree) if tensor.requires_grad]


def _leaves(tree: Tree, rows: Int[Tensor, " b"]) -> Tree:
    """Returns rows of every tensor, cut off from what made them."""
    chosen = [t.detach().index_select(0, rows).requires_grad_() for t in tensors_in(tree)]
    return with_tensors(tree, chosen)


def _gradients(
    result: Tensor, of_weights: list[Tensor], others: Sequence[Tensor], above: Tensor | None = None
) -> tuple[Float[Tensor, " P"], Sequence[Tensor]]:
    """Returns the gradients of all weights end to end, and those of the others."""
    wanted = [*of_weights, *others]
    grads = torch.autograd.grad(result, wanted, above, allow_unused=True, materialize_grads=True)
    flat = torch.cat([grad.reshape(-1) for grad in grads[: len(of_weights)]])
    return flat, grads[len(of_weights) :]


def _add_rows(sums: list[Tensor], rows: Int[Tensor, " b"], grads: Sequence[Tensor]) -> None:
    for total, grad in zip(sums, grads, strict=True):
        total.index_add_(0, rows, grad)
