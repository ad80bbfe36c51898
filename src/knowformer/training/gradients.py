"""Gradients of a batch, slice by slice, on several threads.

What slices have in common is made once for the batch and differentiated once: packed weights,
relation vectors (their weights are most of a model's), and the first layer's query stream of each
relation. Slices see it as leaves. Their gradients are summed in the order of the slices, whichever
ended first, so the bits are the same for any number of threads.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.kernels.interface import Edges
from knowformer.model.knowformer import KnowFormer
from knowformer.model.weights import (
    ModelWeights,
    RelationVectors,
    SharedStates,
    tensors_in,
    with_tensors,
)
from knowformer.queries.query import QueryBatch
from knowformer.system.workers import Workers

SliceLoss = Callable[[QueryBatch, Edges, ModelWeights, SharedStates, int], Float[Tensor, ""]]
Tree = TypeVar("Tree")


def accumulate_gradients(
    model: KnowFormer,
    batch: QueryBatch,
    edges: Edges,
    identity_noise: Float[Tensor, "L V N"],
    loss: SliceLoss,
    *,
    size: int,
    workers: Workers,
    relation_parts: Int[Tensor, " R"] | None = None,
) -> float:
    """Adds the gradients of a batch's loss to the model's, and returns the loss.

    Args:
        model: the model.
        batch: the queries; best in an order that puts equal relations side by side.
        edges: the graph that they see.
        identity_noise: of its entities.
        loss: a slice's share of the loss, given the slice, the edges, the weights, what its queries
            share with others, and its number.
        size: queries per slice.
        workers: the threads.
        relation_parts: for each relation the one whose weights stand for it; None: its own.
    """
    relations: Tensor
    relations, row_of_query = torch.unique(batch.relations, return_inverse=True)
    made = (
        model.weights(identity_noise),
        model.relation_vectors(relations, parts=relation_parts),
    )
    differentiable = [tensor for tensor in tensors_in(made) if tensor.requires_grad]
    leaves = [tensor.detach().requires_grad_() for tensor in differentiable]
    weights, vectors = with_tensors(made, differentiable, leaves)
    of_weights = [tensor for tensor in tensors_in(weights) if tensor.requires_grad]
    first = _FirstStates(model, weights, vectors, edges, len(relations), size, workers)
    common = SharedStates(vectors, first.states)

    def differentiate(start: int) -> tuple[float, Tensor, Sequence[Tensor]]:
        end = min(start + size, len(batch))
        shared = _leaves(common, row_of_query[start:end])
        value = loss(batch.slice(start, end), edges, weights, shared, start // size)
        return value.item(), *_gradients(value, of_weights, tensors_in(shared))

    parts = workers.map(differentiate, range(0, len(batch), size))
    by_row = {id(tensor): torch.zeros_like(tensor) for tensor in tensors_in(common)}
    total = torch.zeros_like(parts[0][1])
    for rows, (_, flat, grads) in zip(row_of_query.split(size), parts, strict=True):
        total += flat
        _add_rows(by_row, tensors_in(common), rows, grads)
    first.add_gradients(total, by_row, of_weights)
    pieces = total.split([tensor.numel() for tensor in of_weights])
    found = {id(t): piece.view_as(t) for t, piece in zip(of_weights, pieces, strict=True)} | by_row
    torch.autograd.backward(differentiable, [found[id(leaf)] for leaf in leaves])
    return sum(value for value, _, _ in parts)


class _FirstStates:
    """The first layer's query stream for every relation of a batch, in slices of relations."""

    def __init__(
        self,
        model: KnowFormer,
        weights: ModelWeights,
        vectors: RelationVectors,
        edges: Edges,
        num_relations: int,
        size: int,
        workers: Workers,
    ) -> None:
        def begin(rows: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
            own = _leaves(self._vectors, rows)
            return own, model.first_states(weights, own, edges, num_queries=len(rows))

        self._vectors = vectors[0].query_key
        self._workers = workers
        self._rows = torch.arange(num_relations).split(size) if model.has_query_stream else ()
        self._begun = workers.map(begin, self._rows)
        done = [states.detach() for _, states in self._begun]
        self.states = torch.cat(done) if done else None

    def add_gradients(
        self, total: Tensor, by_row: dict[int, Tensor], of_weights: list[Tensor]
    ) -> None:
        """Adds what the states' gradient, in ``by_row``, means for weights and relation vectors."""
        if self.states is None:
            return
        above = by_row[id(self.states)]

        def finish(number: int) -> tuple[Tensor, Sequence[Tensor]]:
            own, states = self._begun[number]
            return _gradients(states, of_weights, tensors_in(own), above[self._rows[number]])

        parts = self._workers.map(finish, range(len(self._rows)))
        for rows, (flat, grads) in zip(self._rows, parts, strict=True):
            total += flat
            _add_rows(by_row, tensors_in(self._vectors), rows, grads)


def _leaves(tree: Tree, rows: Int[Tensor, " b"]) -> Tree:
    """Returns rows of every tensor, cut off from what made them."""
    before = tensors_in(tree)
    after = [tensor.detach().index_select(0, rows).requires_grad_() for tensor in before]
    return with_tensors(tree, before, after)


def _gradients(
    result: Tensor, of_weights: list[Tensor], of_shared: list[Tensor], above: Tensor | None = None
) -> tuple[Float[Tensor, " P"], Sequence[Tensor]]:
    """Returns the gradients of all weights end to end, and those of what queries share."""
    wanted = [*of_weights, *of_shared]
    grads = torch.autograd.grad(result, wanted, above, allow_unused=True, materialize_grads=True)
    flat = torch.cat([grad.reshape(-1) for grad in grads[: len(of_weights)]])
    return flat, grads[len(of_weights) :]


def _add_rows(
    sums: dict[int, Tensor],
    tensors: list[Tensor],
    rows: Int[Tensor, " b"],
    grads: Sequence[Tensor],
) -> None:
    for tensor, grad in zip(tensors, grads, strict=True):
        sums[id(tensor)].index_add_(0, rows, grad)
