"""What a kernel backend must offer, with shapes, and which one is used.

Letters: B queries, N rows of all queries together, V entities of the edges, R relations with
inverses, E edges, D hidden width, H heads, C = D / H. A query has a row for every entity that it
sees; where all see the whole graph N = B V.

A backend is right when its error is within twice that of plain float32 torch, measured against
the reference in float64, gradients included.
"""

import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from knowformer.errors import BackendUnavailableError, suggest
from knowformer.kernels import _reference
from knowformer.kernels._attention import kappa, queries_and_keys
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
    check_ids,
)

__all__ = [
    "NO_HEAD",
    "AttendWeights",
    "Backend",
    "Dropout",
    "Edges",
    "HopWeights",
    "InputWeights",
    "QueryView",
    "ScoreWeights",
    "Similarity",
    "StreamWeights",
    "backend_names",
    "check_ids",
    "kappa",
    "queries_and_keys",
    "select_backend",
]

ParallelMap = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]

_logger = logging.getLogger(__name__)


@runtime_checkable
class Backend(Protocol):
    """The operations of the model that cost time."""

    def is_batch_invariant(self, *, width: int, num_heads: int, similarity: Similarity) -> bool:
        """Whether a query's bits are the same in any batch; if not, score queries one by one."""
        ...

    def across(self, parallel_map: ParallelMap) -> "Backend":
        """Returns a backend that also divides the work of a single query among threads.

        The bits are the same. Only worth it where there are fewer queries than threads.
        """
        ...

    def hop(
        self,
        states: Float[Tensor, "N D"],
        relation_vectors: Float[Tensor, "B R D"],
        view: QueryView,
        weights: HopWeights,
        *,
        message_weights: Float[Tensor, " E"] | None = None,
    ) -> Float[Tensor, "N D"]:
        """One message-passing step (eq. 6 and 7): gather, multiply by relation, sum, update.

            pre_u = self_weight * z_u + sum over edges e = r(v, u) of a_e * z_v * relation_vector_r
            out_u = z_u + LayerNorm(update(pre_u)), or update(pre_u) if the weights have no norm

        Args:
            states: z.
            relation_vectors: those of each query.
            view: what the queries see.
            weights: of self_weight, update and norm.
            message_weights: a, one per edge in the order by receiver; None: all are 1.
        """
        ...

    def stream_input(
        self, states: Float[Tensor, "N D"] | None, weights: InputWeights, view: QueryView
    ) -> Float[Tensor, "N D"]:
        """What a stream starts from: an MLP with the head marked.

            z_u = second(relu(first(x_u) + extra_u + indicator if u is the head))

        Args:
            states: x, the entity states; None stands for zero, as in the first layer.
            weights: of the two linear maps.
            view: what the queries see.
        """
        ...

    def stream(
        self,
        states: Float[Tensor, "N D"] | None,
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "B R D"]],
        view: QueryView,
        *,
        message_weights: Sequence[Float[Tensor, " E"]] | None = None,
    ) -> Float[Tensor, "N D"]:
        """Input and hops of a stream: query_key_states, the paper's z~, or value_states, its z^.

        Args:
            states: the entity states; None stands for zero.
            weights: of the input and of each hop.
            relation_vectors: those of each hop.
            view: what the queries see.
            message_weights: those of each hop; None: all are 1.
        """
        ...

    def stream_background(
        self,
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        edges: Edges,
    ) -> Sequence[Float[Tensor, "V D"]]:
        """A first layer's stream without a head, after 0, 1, ... hops, on one graph."""
        ...

    def stream_near_heads(
        self,
        background: Sequence[Float[Tensor, "V D"]],
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        view: QueryView,
    ) -> Float[Tensor, "N D"]:
        """A first layer's stream for queries of one relation on one whole graph; no gradients.

        A head changes only what is within reach of it: the rest is taken from ``background``.
        """
        ...

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
        """All-pairs attention (eq. 8 to 10), then residual, norm, feed-forward, norm (eq. 11).

            gathered_u = [V v_u + sum_w a_w kappa(q_u, k_w) v_w] / [V + sum_w a_w kappa(q_u, k_w)]

        w runs over the V entities that u's query sees.

        Args:
            states: x, the residual.
            query_key_states: what q and k are linear maps of.
            value_states: v.
            weights: of q and k, the feed-forward maps and both norms.
            view: what the queries see.
            num_heads: H.
            dropout: of the feed-forward's hidden layer.
            attended: a, of each row and head; None: all are 1.
        """
        ...

    def finish_layer(
        self,
        states: Float[Tensor, "N D"],
        gathered: Float[Tensor, "N D"],
        weights: AttendWeights,
        *,
        dropout: Dropout | None,
    ) -> Float[Tensor, "N D"]:
        """The rest of ``attend`` after the gathering, for models without attention."""
        ...

    def score(self, states: Float[Tensor, "N D"], weights: ScoreWeights) -> Float[Tensor, " N"]:
        """The score of every row: last(relu(hidden(x)))."""
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
