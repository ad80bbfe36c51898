"""What a kernel backend must offer, with shapes, and which one is used.

Letters: B queries, V entities, R relations with inverses, E edges, D hidden width, H heads,
C = D / H, M messages (distinct pairs of sender and relation).

A backend is right when its error is within twice that of plain float32 torch, measured against
the reference in float64, gradients included.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from knowformer.errors import BackendUnavailableError, suggest
from knowformer.kernels import _reference
from knowformer.kernels._operands import Edges, HopWeights


@runtime_checkable
class Backend(Protocol):
    """The operations of the model that cost time."""

    def hop(
        self,
        states: Float[Tensor, "B V D"],
        relation_vectors: Float[Tensor, "B R D"],
        edges: Edges,
        weights: HopWeights,
    ) -> Float[Tensor, "B V D"]:
        """One message-passing step (eq. 6 and 7): gather, multiply by relation, sum, update."""
        ...

    def linear_attention(
        self, q: Float[Tensor, "B H V C"], k: Float[Tensor, "B H V C"], v: Float[Tensor, "B H V C"]
    ) -> Float[Tensor, "B H V C"]:
        """All-pairs attention with similarity 1 + q.k (eq. 10), linear in V."""
        ...

    def feature_attention(
        self, q: Float[Tensor, "B H V F"], k: Float[Tensor, "B H V F"], v: Float[Tensor, "B H V C"]
    ) -> Float[Tensor, "B H V C"]:
        """All-pairs attention with similarity q.k of non-negative features, linear in V."""
        ...

    def dense_attention(
        self, q: Float[Tensor, "B H V C"], k: Float[Tensor, "B H V C"], v: Float[Tensor, "B H V C"]
    ) -> Float[Tensor, "B H V C"]:
        """All-pairs attention with similarity exp(q.k), quadratic in V."""
        ...


__all__ = ["Backend", "Edges", "HopWeights", "backend_names", "select_backend"]

_BACKENDS: dict[str, Callable[[], Backend]] = {"reference": _reference.ReferenceBackend}


def backend_names() -> list[str]:
    """Returns the names that ``select_backend`` takes."""
    return list(_BACKENDS)


def select_backend(name: str = "reference") -> Backend:
    """Returns the backend called ``name``.

    Raises:
        BackendUnavailableError: there is none of that name, or it cannot run here.
    """
    if name not in _BACKENDS:
        raise BackendUnavailableError(
            f"Expected a backend among {', '.join(_BACKENDS)}, got {name!r}."
            f"{suggest(name, _BACKENDS)}"
        )
    return _BACKENDS[name]()
