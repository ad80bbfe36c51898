"""The CPU backend: tensors and autograd around the compiled kernels.

Limits: float32, widths 16, 32 and 64, heads of 4 to 64 columns, the linear similarity, fewer than
2^31 edges. Whatever is outside of them, and whatever looks into an operation by weights on messages
or on attended entities, goes to the reference, which is slower and right.

One autograd function per stream, attention and score: it saves inputs, and what the backward pass
would otherwise have to sum over all edges again.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from knowformer.kernels._cpu_attention import SUM_CHUNK
from knowformer.kernels._cpu_compile import WIDTHS, Kernel, compiled_kernel
from knowformer.kernels._cpu_stages import BLOCK
from knowformer.kernels._operands import (
    AttendWeights,
    Dropout,
    HopWeights,
    InputWeights,
    QueryView,
    ScoreWeights,
    Similarity,
    StreamWeights,
)
from knowformer.kernels._reference import ReferenceBackend

HEAD_WIDTHS = (4, 8, 16, 32, 64)
PIECES = 8  # of a single query that threads share: more than threads, as rows differ in edges

ParallelMap = Callable[..., list[Any]]
Backward = TypeVar("Backward", bound=Callable[..., Any])


class CpuBackend(ReferenceBackend):
    """Fused kernels where they apply, the reference elsewhere."""

    def __init__(self, parallel_map: ParallelMap | None = None) -> None:
        self._map = parallel_map

    def is_batch_invariant(self, *, width: int, num_heads: int, similarity: Similarity) -> bool:
        """Wherever the kernels apply: they take one query after the other."""
        return width in WIDTHS and width // num_heads in HEAD_WIDTHS and similarity == "linear"

    def across(self, parallel_map: ParallelMap) -> "CpuBackend":
        """See ``Backend.across``."""
        return CpuBackend(parallel_map)

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
        if message_weights is not None or not _fits(states):
            return super().hop(
                states, relation_vectors, view, weights, message_weights=message_weights
            )
        tensors = (states, relation_vectors, weights.vectors, weights.matrices)
        return _run(_Hops, self._map, view, weights.norm, 1, *tensors)

    def stream_input(
        self, states: Float[Tensor, "N D"] | None, weights: InputWeights, view: QueryView
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.stream_input``."""
        if not _fits(weights.extra):
            return super().stream_input(states, weights, view)
        return _run(_Input, self._map, view, states, *weights)

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
        if message_weights is not None or not weights.hops or not _fits(weights.start.extra):
            return super().stream(
                states, weights, relation_vectors, view, message_weights=message_weights
            )
        begun = self.stream_input(states, weights.start, view)
        distinct = _distinct(relation_vectors)
        packed = [tensor for hop in weights.hops for tensor in (hop.vectors, hop.matrices)]
        norm = weights.hops[0].norm
        return _run(_Hops, self._map, view, norm, len(weights.hops), begun, *distinct, *packed)

    def stream_near_heads(
        self,
        background: Sequence[Float[Tensor, "V D"]],
        weights: StreamWeights,
        relation_vectors: Sequence[Float[Tensor, "1 R D"]],
        view: QueryView,
    ) -> Float[Tensor, "N D"]:
        """See ``Backend.stream_near_heads``: only what a head changes is computed."""
        start, hops, edges = weights.start, weights.hops, view.edges
        if not _fits(start.extra) or not hops:
            return super().stream_near_heads(background, weights, relation_vectors, view)
        vectors, matrices = (
            _stacked([h.vectors for h in hops]),
            _stacked([h.matrices for h in hops]),
        )
        relations = torch.cat(tuple(relation_vectors))
        out = start.extra.new_empty(view.num_rows, start.extra.shape[-1])
        compiled_kernel("near_heads_forward", start.extra.shape[-1])(
            background=torch.cat(tuple(background)),
            relation_vectors=relations,
            offsets=edges.offsets,
            sender=edges.sender,
            relation=edges.relation,
            sender_offsets=edges.sender_offsets,
            message_offsets=edges.message_offsets,
            receiver=edges.receiver,
            heads=view.heads.contiguous(),
            extra=start.extra.contiguous(),
            start_vectors=start.vectors.contiguous(),
            start_matrices=start.matrices.contiguous(),
            vectors=vectors,
            matrices=matrices,
            position=torch.full((edges.num_entities,), -1, dtype=torch.int32),
            out=out,
            num_queries=len(view),
            num_entities=edges.num_entities,
            num_relations=relations.shape[1],
            num_vectors=vectors.shape[1],
            hops=len(hops),
            num_maps=matrices.shape[1],
            norm=int(hops[0].norm),
        )
        return out

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
        has_kernel = weights.similarity == "linear" and attended is None
        if not has_kernel or not _fits(states) or states.shape[-1] // num_heads not in HEAD_WIDTHS:
            return super().attend(
                states, query_key_states, value_states, weights, view,
                num_heads=num_heads, dropout=dropout, attended=attended,
            )  # fmt: skip
        tensors = (states, query_key_states, value_states, weights.vectors, weights.matrices)
        return _run(_Attend, self._map, view, num_heads, dropout, *tensors)

    def score(self, states: Float[Tensor, "N D"], weights: ScoreWeights) -> Float[Tensor, " N"]:
        """See ``Backend.score``."""
        if not _fits(states):
            return super().score(states, weights)
        return _run(_Score, *weights, states)


def _fits(states: Tensor) -> bool:
    return states.dtype == torch.float32 and states.shape[-1] in WIDTHS


def _distinct(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """One tensor that serves all hops, or one for each."""
    return tensors[:1] if all(tensor is tensors[0] for tensor in tensors) else tensors


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    return torch.stack(tuple(tensors))


def _contiguous(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(tensor.contiguous() for tensor in tensors)


def _once_differentiable(backward: Backward) -> Backward:
    """Refuses second derivatives, which no kernel has; torch's own decorator loses the type."""
    return cast("Backward", once_differentiable(backward))


class _NoGradient:
    """Stands for autograd's context where nothing is to be differentiated."""

    needs_input_grad = (False,)
    rest: Any = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Forgets them."""


def _run(function: Any, *arguments: Any) -> Tensor:
    """Calls an operation, through autograd only where that is on: it costs as much as a kernel."""
    if torch.is_grad_enabled():
        return function.apply(*arguments)
    return function.forward(_NoGradient(), *arguments)


def _by_rows(
    kernel: Kernel, parallel_map: ParallelMap | None, view: QueryView, **values: Any
) -> None:
    """Runs a kernel on all rows: of a single query in pieces, if there are threads to share it."""
    last = view.max_rows
    if parallel_map is None or len(view) != 1 or last <= BLOCK:
        kernel(**values, first_row=0, last_row=last)
        return
    size = -(-last // (PIECES * BLOCK)) * BLOCK

    def run_range(first: int) -> None:
        kernel(**values, first_row=first, last_row=min(first + size, last))

    parallel_map(run_range, range(0, last, size))


class _Input(Function):
    @staticmethod
    def forward(
        ctx: Any,
        parallel_map: ParallelMap | None,
        view: QueryView,
        states: Tensor | None,
        extra: Tensor,
        vectors: Tensor,
        matrices: Tensor,
    ) -> Tensor:
        states = None if states is None else states.contiguous()
        extra, vectors, matrices = _contiguous(extra, vectors, matrices)
        out = extra.new_empty(view.num_rows, extra.shape[-1])
        _by_rows(
            compiled_kernel("input_forward", extra.shape[-1]), parallel_map, view,
            **_input_arguments(view, states, extra, vectors, matrices), out=out,
        )  # fmt: skip
        ctx.save_for_backward(states, extra, vectors, matrices)
        ctx.rest = view
        return out

    @staticmethod
    @_once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        gradient = grad_outputs[0].contiguous()
        states, extra, vectors, matrices = ctx.saved_tensors
        d_states = None if states is None else torch.empty_like(states)
        d_extra, d_vectors, d_matrices = map(torch.zeros_like, (extra, vectors, matrices))
        compiled_kernel("input_backward", extra.shape[-1])(
            **_input_arguments(ctx.rest, states, extra, vectors, matrices),
            gradient=gradient,
            d_states=d_states,
            d_extra=d_extra,
            d_vectors=d_vectors,
            d_matrices=d_matrices,
        )
        return None, None, d_states, d_extra, d_vectors, d_matrices


def _input_arguments(
    view: QueryView, states: Tensor | None, extra: Tensor, vectors: Tensor, matrices: Tensor
) -> dict[str, Any]:
    return {
        "states": states,
        "extra": extra,
        "segments": view.offsets,
        "starts": view.starts,
        "heads": view.heads.contiguous(),
        "vectors": vectors,
        "matrices": matrices,
        "num_queries": len(view),
        "shared": int(len(extra) == 1),
        "has_states": int(states is not None),
        "marks_head": len(vectors) - 1,
    }


class _Hops(Function):
    """Some hops, one after the other. Relation vectors are one tensor for all, or one for each."""

    @staticmethod
    def forward(
        ctx: Any,
        parallel_map: ParallelMap | None,
        view: QueryView,
        norm: bool,
        num_hops: int,
        states: Tensor,
        *tensors: Tensor,
    ) -> Tensor:
        states, *rest = _contiguous(states, *tensors)
        relations, packed = rest[: -2 * num_hops], rest[-2 * num_hops :]
        keep = any(ctx.needs_input_grad)
        saved: list[Tensor] = []
        for number in range(num_hops):
            pre, out = torch.empty_like(states) if keep else None, torch.empty_like(states)
            _by_rows(
                compiled_kernel("hop_forward", states.shape[-1]),
                parallel_map,
                view,
                **_hop_arguments(view, relations, packed, number, norm),
                states=states,
                offsets=view.edges.offsets,
                sender=view.edges.sender,
                relation=view.edges.relation,
                pre=pre,
                out=out,
                keep=int(keep),
            )
            if pre is not None:
                saved += [states, pre]
            states = out
        ctx.save_for_backward(*saved, *relations, *packed)
        ctx.rest = view, norm, num_hops, len(relations)
        return states

    @staticmethod
    @_once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        gradient = grad_outputs[0].contiguous()
        view, norm, num_hops, num_sets = ctx.rest
        saved, rest = ctx.saved_tensors[: 2 * num_hops], ctx.saved_tensors[2 * num_hops :]
        relations, packed = rest[:num_sets], rest[num_sets:]
        d_relations: list[Tensor | None] = [None] * num_sets
        d_packed = [torch.zeros_like(tensor) for tensor in packed]
        for number in reversed(range(num_hops)):
            states, pre = saved[2 * number : 2 * number + 2]
            at = min(number, num_sets - 1)
            d_states, d_relation_vectors = torch.empty_like(states), torch.zeros_like(relations[at])
            compiled_kernel("hop_backward", states.shape[-1])(
                **_hop_arguments(view, relations, packed, number, norm),
                states=states,
                pre=pre,
                gradient=gradient,
                sender_offsets=view.edges.sender_offsets,
                message_offsets=view.edges.message_offsets,
                message_relation=view.edges.message_relation,
                receiver=view.edges.receiver,
                d_states=d_states,
                d_relation_vectors=d_relation_vectors,
                d_vectors=d_packed[2 * number],
                d_matrices=d_packed[2 * number + 1],
                max_rows=view.max_rows,
            )
            before = d_relations[at]
            d_relations[at] = d_relation_vectors if before is None else before + d_relation_vectors
            gradient = d_states
        return None, None, None, None, gradient, *d_relations, *d_packed


def _hop_arguments(
    view: QueryView,
    relations: Sequence[Tensor],
    packed: Sequence[Tensor],
    number: int,
    norm: bool,
) -> dict[str, Any]:
    relation_vectors = relations[min(number, len(relations) - 1)]
    vectors, matrices = packed[2 * number : 2 * number + 2]
    return {
        "relation_vectors": relation_vectors,
        "segments": view.offsets,
        "starts": view.starts,
        "vectors": vectors,
        "matrices": matrices,
        "num_queries": len(view),
        "num_relations": relation_vectors.shape[1],
        "num_maps": len(matrices),
        "norm": int(norm),
    }


class _Attend(Function):
    @staticmethod
    def forward(
        ctx: Any,
        parallel_map: ParallelMap | None,
        view: QueryView,
        num_heads: int,
        dropout: Dropout | None,
        *tensors: Tensor,
    ) -> Tensor:
        states, query_key, values, vectors, matrices = _contiguous(*tensors)
        width = states.shape[-1]
        of_rows = {"query_key": query_key, "values": values, "segments": view.offsets}
        weights = {"vectors": vectors, "matrices": matrices, "num_queries": len(view)}
        arguments = {**of_rows, **weights, **_dropout_arguments(dropout)}
        sums = _attention_sums(parallel_map, view, width, width // num_heads, **of_rows, **weights)
        out = torch.empty_like(states)
        _by_rows(
            compiled_kernel("attend_forward", width, width // num_heads), parallel_map, view,
            **arguments, states=states, sums=sums, out=out,
        )  # fmt: skip
        ctx.save_for_backward(states, query_key, values, vectors, matrices, sums)
        ctx.rest = arguments, num_heads
        return out

    @staticmethod
    @_once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        gradient = grad_outputs[0].contiguous()
        states, query_key, values, vectors, matrices, sums = ctx.saved_tensors
        arguments, num_heads = ctx.rest
        width = states.shape[-1]
        d_states, d_query_key, d_values = map(torch.empty_like, (states, query_key, values))
        d_vectors, d_matrices = torch.zeros_like(vectors), torch.zeros_like(matrices)
        compiled_kernel("attend_backward", width, width // num_heads)(
            **arguments,
            states=states,
            sums=sums,
            gradient=gradient,
            d_states=d_states,
            d_query_key=d_query_key,
            d_values=d_values,
            d_vectors=d_vectors,
            d_matrices=d_matrices,
        )
        return None, None, None, None, d_states, d_query_key, d_values, d_vectors, d_matrices


def _attention_sums(
    parallel_map: ParallelMap | None, view: QueryView, width: int, head_width: int, **values: Any
) -> Float[Tensor, "B {head_width}+2 D"]:
    kernel, last = compiled_kernel("attention_sums", width, head_width), view.max_rows
    if parallel_map is None or len(view) != 1 or last <= SUM_CHUNK:
        sums = torch.empty(len(view), head_width + 2, width)
        kernel(**values, sums=sums, first_row=0, last_row=last)
        return sums

    def chunk_sums(first: int) -> Tensor:
        sums = torch.empty(1, head_width + 2, width)
        kernel(**values, sums=sums, first_row=first, last_row=min(first + SUM_CHUNK, last))
        return sums

    # In the order in which the kernel itself would add them.
    total = torch.zeros(1, head_width + 2, width)
    for sums in parallel_map(chunk_sums, range(0, last, SUM_CHUNK)):
        total += sums
    return total


def _dropout_arguments(dropout: Dropout | None) -> dict[str, Any]:
    if dropout is None:
        return {"dropout": None, "threshold": 0, "scale": 1.0}
    return {
        "dropout": dropout.random_bytes,
        "threshold": dropout.threshold,
        "scale": dropout.scale,
    }


class _Score(Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, matrices: Tensor, bias: Tensor, states: Tensor
    ) -> Tensor:
        states, vectors, matrices = _contiguous(states, vectors, matrices)
        out = states.new_empty(len(states))
        compiled_kernel("score_forward", states.shape[-1])(
            states=states, vectors=vectors, matrices=matrices, out=out,
            first_row=0, last_row=len(states), bias=bias.item(),
        )  # fmt: skip
        ctx.save_for_backward(states, vectors, matrices)
        return out

    @staticmethod
    @_once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        gradient = grad_outputs[0].contiguous()
        states, vectors, matrices = ctx.saved_tensors
        d_states, d_vectors, d_matrices = (
            torch.empty_like(states), torch.zeros_like(vectors), torch.zeros_like(matrices)
        )  # fmt: skip
        compiled_kernel("score_backward", states.shape[-1])(
            states=states, vectors=vectors, matrices=matrices, gradient=gradient,
            d_states=d_states, d_vectors=d_vectors, d_matrices=d_matrices, num_rows=len(states),
        )  # fmt: skip
        return d_vectors, d_matrices, gradient.sum().reshape(1), d_states
