"""A model's weights in the form that kernels take, and trees of tensors.

Modules own parameters; before a batch they are packed once into these records, which every slice of
the batch then shares.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from jaxtyping import Float
from torch import Tensor

from knowformer.kernels.interface import AttendWeights, HopWeights, InputWeights, ScoreWeights

Tree = TypeVar("Tree")


class StreamWeights(NamedTuple):
    """Weights of a stream: what it starts from, and its hops."""

    extra: Float[Tensor, "V_or_1 D"]
    start: InputWeights
    hops: tuple[HopWeights, ...]


class LayerWeights(NamedTuple):
    """Weights of a layer, except what makes relation vectors."""

    query_key: StreamWeights | None
    value: StreamWeights
    attend: AttendWeights


class ModelWeights(NamedTuple):
    """Weights of a model, except what makes relation vectors."""

    layers: tuple[LayerWeights, ...]
    score: ScoreWeights


class RelationVectorsOfLayer(NamedTuple):
    """What each relation does to messages: a set per hop; those of the query stream are one."""

    query_key: tuple[Float[Tensor, "B R D"], ...]
    value: tuple[Float[Tensor, "B R D"], ...]


RelationVectors = tuple[RelationVectorsOfLayer, ...]


class SharedStates(NamedTuple):
    """What queries with the same relation have in common, a row for every query."""

    vectors: RelationVectors
    first_states: Float[Tensor, "B V D"] | None  # the first layer's query stream


def tensors_in(tree: object) -> list[Tensor]:
    """Returns the distinct tensors of nested tuples, in a fixed order."""
    return list({id(tensor): tensor for tensor in _walk(tree)}.values())


def with_tensors(tree: Tree, before: Sequence[Tensor], after: Sequence[Tensor]) -> Tree:
    """Returns nested tuples with each tensor of ``before`` replaced by that of ``after``."""
    replacement = {id(old): new for old, new in zip(before, after, strict=True)}

    def rebuilt(node: Any) -> Any:
        if isinstance(node, tuple):
            parts = [rebuilt(part) for part in node]
            return type(node)(*parts) if hasattr(node, "_fields") else tuple(parts)
        return replacement.get(id(node), node)

    return rebuilt(tree)


def _walk(node: object) -> Iterator[Tensor]:
    if isinstance(node, Tensor):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _walk(part)
