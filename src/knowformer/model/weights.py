"""A model's weights in the form that kernels take, and trees of tensors.

Modules own parameters; before a batch they are packed once into these records, which every
micro-batch then shares.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from jaxtyping import Float
from torch import Tensor

from knowformer.kernels.interface import AttendWeights, ScoreWeights, StreamWeights

Tree = TypeVar("Tree")


class LayerWeights(NamedTuple):
    """Weights of a layer, except what makes relation vectors."""

    query_key: StreamWeights | None  # None: q and k are linear maps of the entity states
    value: StreamWeights
    attend: AttendWeights


class ModelWeights(NamedTuple):
    """Weights of a model, except what makes relation vectors."""

    layers: tuple[LayerWeights, ...]
    score: ScoreWeights
    num_heads: int  # 0: no attention
    dropout_threshold: int  # of 256, when dropout acts
    centres_query_keys: bool = False  # less their mean over what the query sees


def with_noise_inputs(
    weights: ModelWeights, inputs: Sequence[Float[Tensor, "V D"] | None]
) -> ModelWeights:
    """Returns the weights for other entities; see ``KnowFormer.noise_inputs``."""

    def replaced(layer: LayerWeights, extra: Tensor | None) -> LayerWeights:
        stream = layer.query_key
        if stream is None or extra is None:
            return layer
        start = stream.start._replace(extra=extra)
        return layer._replace(query_key=stream._replace(start=start))

    layers = [replaced(*pair) for pair in zip(weights.layers, inputs, strict=True)]
    return weights._replace(layers=tuple(layers))


class LayerVectors(NamedTuple):
    """What each relation does to messages in one layer: a vector for every query and relation."""

    query_key: Float[Tensor, "B R D"] | None  # the same for all hops of the query stream
    value: tuple[Float[Tensor, "B R D"], ...]  # of each hop


RelationVectors = tuple[LayerVectors, ...]


def tensors_in(tree: object) -> list[Tensor]:
    """Returns the tensors of nested tuples, in order."""
    return list(_walk(tree))


def with_tensors(tree: Tree, tensors: Sequence[Tensor]) -> Tree:
    """Returns nested tuples of the same form with other tensors in their places."""
    left = iter(tensors)

    def rebuilt(node: Any) -> Any:
        if isinstance(node, tuple):
            children = [rebuilt(child) for child in node]
            return type(node)(*children) if hasattr(node, "_fields") else tuple(children)
        return next(left) if isinstance(node, Tensor) else node

    return rebuilt(tree)


def select_queries(vectors: RelationVectors, queries: Any) -> RelationVectors:
    """Returns the relation vectors of some queries: by their numbers, or by a slice."""
    if isinstance(queries, Tensor):
        chosen = [tensor.index_select(0, queries) for tensor in tensors_in(vectors)]
    else:
        chosen = [tensor[queries] for tensor in tensors_in(vectors)]
    return with_tensors(vectors, chosen)


def _walk(node: object) -> Iterator[Tensor]:
    if isinstance(node, Tensor):
        yield node
    elif isinstance(node, tuple):
        for child in node:
            yield from _walk(child)
