"""Gradients of a batch, slice by slice, on several threads.

Relation vectors are made once for the whole batch: their weights are most of a model's, and so
their gradients are summed once instead of once per slice.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from knowformer.model.knowformer import KnowFormer, RelationVectorsOfLayers
from knowformer.queries.query import QueryBatch
from knowformer.workers import Workers

SliceLoss = Callable[[QueryBatch, RelationVectorsOfLayers, int], Float[Tensor, ""]]


def accumulate_gradients(
    model: KnowFormer,
    direct: list[nn.Parameter],
    batch: QueryBatch,
    loss: SliceLoss,
    *,
    size: int,
    workers: Workers,
) -> float:
    """Adds the gradients of a batch's loss to the model's, and returns the loss.

    Args:
        model: the model.
        direct: its ``direct_parameters``.
        batch: the queries; best in an order that puts equal relations side by side.
        loss: a slice's share of the loss, given the slice, its relation vectors and its number.
        size: queries per slice.
        workers: the threads.
    """
    vectors = model.relation_vectors(batch.relations)
    made = vectors.tensors()
    leaves = [tensor.detach() for tensor in made]

    def differentiate(number: int) -> tuple[float, tuple[Tensor | None, ...]]:
        first, last = number * size, min((number + 1) * size, len(batch))
        own = [leaf[first:last].requires_grad_() for leaf in leaves]
        value = loss(batch.slice(first, last), vectors.with_tensors(own), number)
        grads = torch.autograd.grad(value, [*own, *direct], allow_unused=True)
        return value.item(), grads

    parts = workers.map(differentiate, range(-(-len(batch) // size)))
    # In the order of the slices, whichever ended first: the same bits for any number of threads.
    for at, parameter in enumerate(direct, start=len(made)):
        for _, grads in parts:
            grad = grads[at]
            if grad is not None:
                parameter.grad = grad if parameter.grad is None else parameter.grad.add_(grad)
    joined = [_joined([grads[at] for _, grads in parts], made[at]) for at in range(len(made))]
    if made:
        torch.autograd.backward(made, joined)
    return sum(value for value, _ in parts)


def direct_parameters(model: KnowFormer) -> list[nn.Parameter]:
    """Returns the parameters that slices depend on directly, not through relation vectors."""
    through = {id(parameter) for parameter in model.relation_parameters()}
    return [p for p in model.parameters() if id(p) not in through]


def _joined(grads: list[Tensor | None], like: Tensor) -> Tensor:
    if any(grad is None for grad in grads):
        return torch.zeros_like(like)
    return torch.cat([grad for grad in grads if grad is not None])
