"""What a kernel backend must offer, with shapes, and which one is used.

Letters: B queries, V entities, R relations with inverses, E edges, D hidden width, H heads,
C = D / H, M messages (distinct pairs of sender and relation).

A backend is right when its error is within twice that of plain float32 torch, measured against
the reference in float64, gradients included.
"""

import importlib
import logging
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from knowformer.errors import BackendUnavailableError, suggest
from knowformer.kernels import _reference
from knowformer.kernels._operands import (
    AttendWeights,
    Dropout,
    Edges,
    HopWeights,
    InputWeights,
    ScoreWeights,
    Similarity,
)

__all__ = [
    "AttendWeights",
    "Backend",
    "Dropout",
    "Edges",
    "HopWeights",
    "InputWeights",
    "ScoreWeights",
    "Similarity",
    "backend_names",
    "select_backend",
]


_logger = logging.getLogger(__name__)


@runtime_checkable
class Backend(Protocol):
    """The operations of the model that cost time."""

    def is_batch_invariant(self, *, width: int, num_heads: int, similarity: Similarity) -> bool:
        """Whether a query's bits are the same in any batch; if not, score queries one by one."""
        ...

    def hop(
        self,
        states: Float[Tensor, "B V D"],
        relation_vectors: Float[Tensor, "B R D"],
        edges: Edges,
        weights: HopWeights,
    ) -> Float[Tensor, "B V D"]:
        """One message-passing step (eq. 6 and 7): gather, multiply by relation, sum, update."""
        ...

    def stream_input(
        self,
        states: Float[Tensor, "B V D"] | None,
        extra: Float[Tensor, "V_or_1 D"],
        weights: InputWeights,
        *,
        heads: Int[Tensor, " B"] | None,
        num_queries: int,
        num_entities: int,
    ) -> Float[Tensor, "B V D"]:
        """What a stream starts from: second @ relu(first @ states + extra + bonus at the head).

        Args:
            states: entity states; None stands for zero, as in the first layer.
            extra: what joins the hidden layer, per entity or the same for all.
            weights: of the two linear maps.
            heads: each query's head, where the bonus goes; None if there is no bonus.
            num_queries: B.
            num_entities: V.
        """
        ...

    def spread(
        self,
        background: Sequence[Float[Tensor, "1 V D"]],
        extra: Float[Tensor, "1 D"],
        start: InputWeights,
        hops: Sequence[HopWeights],
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        edges: Edges,
        *,
        heads: Int[Tensor, " B"],
    ) -> Float[Tensor, "B V D"]:
        """Input and hops of a stream whose queries share their relation; no gradients.

        Args:
            background: the same stream without a head, after 0, 1, ... hops. A head changes only
                what is within reach, so the rest may be taken from here.
            extra: see ``stream_input``; its states are zero.
            start: weights of the input.
            hops: weights of the hops.
            relation_vectors: those of each hop.
            edges: the graph.
            heads: each query's head.
        """
        ...

    def attend(
        self,
        states: Float[Tensor, "B V D"],
        query_key_states: Float[Tensor, "B V D"],
        value_states: Float[Tensor, "B V D"],
        weights: AttendWeights,
        *,
        num_heads: int,
        dropout: Dropout | None,
    ) -> Float[Tensor, "B V D"]:
        """All-pairs attention (eq. 8 to 10), then residual, norm, feed-forward, norm (eq. 11)."""
        ...

    def finish_layer(
        self,
        states: Float[Tensor, "B V D"],
        gathered: Float[Tensor, "B V D"],
        weights: AttendWeights,
        *,
        dropout: Dropout | None,
    ) -> Float[Tensor, "B V D"]:
        """The part of ``attend`` after the attention, for models without it."""
        ...

    def score(self, states: Float[Tensor, "B V D"], weights: ScoreWeights) -> Float[Tensor, "B V"]:
        """The score of every entity: last @ relu(hidden @ states)."""
        ...


def _cpu_backend() -> Backend:
    if find_spec("numba") is None:
        raise BackendUnavailableError(
            "Expected Numba for the cpu backend, found none. Install it with 'pip install numba', "
            "or choose the reference backend."
        )
    # Imported when chosen: Numba takes a while to load.
    backend: Backend = importlib.import_module("knowformer.kernels._cpu").CpuBackend()
    return backend


_BACKENDS: dict[str, Callable[[], Backend]] = {
    "cpu": _cpu_backend,
    "reference": _reference.ReferenceBackend,
}


def backend_names() -> list[str]:
    """Returns the backends that there are, the fastest first."""
    return list(_BACKENDS)


def select_backend(name: str = "auto") -> Backend:
    """Returns the backend called ``name``; ``auto`` is the fastest that can run here.

    Raises:
        BackendUnavailableError: there is none of that name, or it cannot run here.
    """
    if name == "auto":
        if find_spec("numba") is not None:
            return _cpu_backend()
        _logger.info("Numba is not installed: the reference kernels run, many times slower.")
        return _reference.ReferenceBackend()
    if name not in _BACKENDS:
        known = ["auto", *_BACKENDS]
        raise BackendUnavailableError(
            f"Expected a backend among {', '.join(known)}, got {name!r}.{suggest(name, known)}"
        )
    return _BACKENDS[name]()
