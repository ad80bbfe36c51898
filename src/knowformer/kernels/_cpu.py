"""The CPU backend: torch tensors and autograd around the compiled kernels.

Float32 states of width 16, 32 or 64 run here; anything else goes to the reference, which is
slower and right. One autograd function per operation: it saves inputs and what the backward pass
would otherwise have to sum over all edges again.
"""

# pyright: basic

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from knowformer.kernels._cpu_compile import WIDTHS, compiled_kernel
from knowformer.kernels._cpu_stages import BLOCK
from knowformer.kernels._operands import (
    AttendWeights,
    Dropout,
    Edges,
    HopWeights,
    InputWeights,
    ScoreWeights,
    Similarity,
)
from knowformer.kernels._reference import ReferenceBackend

HEAD_WIDTHS = (4, 8, 16, 32, 64)
ATTEND_ROWS = 8 * BLOCK + 1  # of scratch, the last one zero


class CpuBackend(ReferenceBackend):
    """Fused kernels where they apply, the reference elsewhere."""

    def is_batch_invariant(self, *, width: int, num_heads: int, similarity: Similarity) -> bool:
        """Wherever the kernels apply: they take one query after the other."""
        return width in WIDTHS and width // num_heads in HEAD_WIDTHS and similarity == "linear"

    def hop(
        self, states: Tensor, relation_vectors: Tensor, edges: Edges, weights: HopWeights
    ) -> Tensor:
        """See ``Backend.hop``."""
        if not _fits(states):
            return super().hop(states, relation_vectors, edges, weights)
        return _run(_Hop, states, relation_vectors, *weights, edges)

    def stream_input(
        self,
        states: Tensor | None,
        extra: Tensor,
        weights: InputWeights,
        *,
        heads: Tensor | None,
        num_queries: int,
        num_entities: int,
    ) -> Tensor:
        """See ``Backend.stream_input``."""
        if not _fits(extra):
            return super().stream_input(
                states, extra, weights, heads=heads,
                num_queries=num_queries, num_entities=num_entities,
            )  # fmt: skip
        if heads is None:
            heads = torch.full((num_queries,), -1)
        return _run(_Input, states, extra, *weights, heads, num_entities)

    def spread(
        self,
        background: Sequence[Tensor],
        extra: Tensor,
        start: InputWeights,
        hops: Sequence[HopWeights],
        relation_vectors: Sequence[Tensor],
        edges: Edges,
        *,
        heads: Tensor,
    ) -> Tensor:
        """See ``Backend.spread``: only what a head changes is computed."""
        if not _fits(extra) or not hops:
            return super().spread(
                background, extra, start, hops, relation_vectors, edges, heads=heads
            )
        width, num_entities, num_queries = extra.shape[-1], edges.num_entities, len(heads)
        states, vectors = torch.cat(tuple(background)), torch.cat(tuple(relation_vectors))
        rows, maps = torch.stack([h.rows for h in hops]), torch.stack([h.maps for h in hops])
        layers, norm = maps.shape[1], hops[0].norm
        extra, start_rows, start_maps, heads = _contiguous(extra, *start, heads)
        order = torch.empty(num_entities, dtype=torch.int32)
        counts = torch.empty(len(hops) + 1, dtype=torch.int32)
        position = torch.full((num_entities,), -1, dtype=torch.int32)
        near, far = _rows(width, num_entities), _rows(width, num_entities)
        out = extra.new_empty(num_queries, num_entities, width)
        own, scratch = _rows(width, layers * (width + 1)), _rows(width, 4 * BLOCK)
        compiled_kernel("spread_forward", width)(
            states.data_ptr(), vectors.data_ptr(), edges.offsets.data_ptr(),
            edges.sender.data_ptr(), edges.relation.data_ptr(), edges.sender_offsets.data_ptr(),
            edges.message_offsets.data_ptr(), edges.receiver.data_ptr(), heads.data_ptr(),
            extra.data_ptr(), start_rows.data_ptr(), start_maps.data_ptr(), rows.data_ptr(),
            maps.data_ptr(), order.data_ptr(), position.data_ptr(), counts.data_ptr(),
            near.data_ptr(), far.data_ptr(), out.data_ptr(), own.data_ptr(), scratch.data_ptr(),
            num_queries, num_entities, vectors.shape[1], rows.shape[1], len(hops), layers, norm,
        )  # fmt: skip
        return out

    def attend(
        self,
        states: Tensor,
        query_key_states: Tensor,
        value_states: Tensor,
        weights: AttendWeights,
        *,
        num_heads: int,
        dropout: Dropout | None,
    ) -> Tensor:
        """See ``Backend.attend``."""
        head_width = states.shape[-1] // num_heads
        if not _fits(states) or head_width not in HEAD_WIDTHS or weights.similarity != "linear":
            return super().attend(
                states, query_key_states, value_states, weights,
                num_heads=num_heads, dropout=dropout,
            )  # fmt: skip
        return _run(
            _Attend,
            states,
            query_key_states,
            value_states,
            weights.rows,
            weights.maps,
            num_heads,
            dropout,
        )

    def score(self, states: Tensor, weights: ScoreWeights) -> Tensor:
        """See ``Backend.score``."""
        if not _fits(states):
            return super().score(states, weights)
        return _run(_Score, states, *weights)


def _fits(states: Tensor) -> bool:
    return states.dtype == torch.float32 and states.shape[-1] in WIDTHS


def _rows(width: int, count: int) -> Tensor:
    return torch.empty(count, width)


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


class _Hop(Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, relations: Tensor, rows: Tensor, maps: Tensor, norm: bool,
        edges: Edges,
    ) -> Tensor:  # fmt: skip
        states, relations, rows, maps = _contiguous(states, relations, rows, maps)
        num_queries, num_entities, width = states.shape
        keep = any(ctx.needs_input_grad)
        pre = torch.empty_like(states) if keep else states
        out, layers = torch.empty_like(states), len(maps)
        own, scratch = _rows(width, layers * (width + 1)), _rows(width, 4 * BLOCK)
        compiled_kernel("hop_forward", width)(
            states.data_ptr(), relations.data_ptr(), edges.offsets.data_ptr(),
            edges.sender.data_ptr(), edges.relation.data_ptr(), rows.data_ptr(), maps.data_ptr(),
            pre.data_ptr(), out.data_ptr(), own.data_ptr(), scratch.data_ptr(),
            num_queries, num_entities, relations.shape[1], layers, norm, keep,
        )  # fmt: skip
        if keep:
            ctx.save_for_backward(states, relations, rows, maps, pre)
            ctx.rest = norm, edges
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, relations, rows, maps, pre = ctx.saved_tensors
        norm, edges = ctx.rest
        num_queries, num_entities, width = states.shape
        gradient, layers = gradient.contiguous(), len(maps)
        d_states, d_relations = torch.empty_like(states), torch.zeros_like(relations)
        d_rows, d_maps = torch.zeros_like(rows), torch.zeros_like(maps)
        own, transposed = _rows(width, layers * (width + 1)), torch.empty_like(maps)
        d_pre, scratch = _rows(width, num_entities), _rows(width, 5 * BLOCK)
        compiled_kernel("hop_backward", width)(
            states.data_ptr(), relations.data_ptr(), pre.data_ptr(), gradient.data_ptr(),
            edges.sender_offsets.data_ptr(), edges.message_offsets.data_ptr(),
            edges.message_relation.data_ptr(), edges.receiver.data_ptr(),
            rows.data_ptr(), maps.data_ptr(), own.data_ptr(), transposed.data_ptr(),
            d_pre.data_ptr(), d_states.data_ptr(), d_relations.data_ptr(), d_rows.data_ptr(),
            d_maps.data_ptr(), scratch.data_ptr(),
            num_queries, num_entities, relations.shape[1], layers, norm,
        )  # fmt: skip
        return d_states, d_relations, d_rows, d_maps, None, None


class _Input(Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor | None, extra: Tensor, rows: Tensor, maps: Tensor, heads: Tensor,
        num_entities: int,
    ) -> Tensor:  # fmt: skip
        width, num_queries = extra.shape[-1], len(heads)
        states = None if states is None else states.contiguous()
        extra, rows, maps, heads = _contiguous(extra, rows, maps, heads)
        out, scratch = extra.new_empty(num_queries, num_entities, width), _rows(width, 2 * BLOCK)
        compiled_kernel("input_forward", width)(
            0 if states is None else states.data_ptr(), extra.data_ptr(), heads.data_ptr(),
            rows.data_ptr(), maps.data_ptr(), out.data_ptr(), scratch.data_ptr(),
            num_queries, num_entities, len(extra) == 1, states is not None,
        )  # fmt: skip
        ctx.save_for_backward(states, extra, rows, maps, heads)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, extra, rows, maps, heads = ctx.saved_tensors
        gradient = gradient.contiguous()
        num_queries, num_entities, width = gradient.shape
        d_states = None if states is None else torch.empty_like(states)
        d_extra, d_rows, d_maps = map(torch.zeros_like, (extra, rows, maps))
        transposed, scratch = torch.empty_like(maps), _rows(width, 4 * BLOCK)
        compiled_kernel("input_backward", width)(
            0 if states is None else states.data_ptr(), extra.data_ptr(), heads.data_ptr(),
            rows.data_ptr(), maps.data_ptr(), transposed.data_ptr(), gradient.data_ptr(),
            0 if d_states is None else d_states.data_ptr(), d_extra.data_ptr(), d_rows.data_ptr(),
            d_maps.data_ptr(), scratch.data_ptr(),
            num_queries, num_entities, len(extra) == 1, states is not None,
        )  # fmt: skip
        return d_states, d_extra, d_rows, d_maps, None, None


class _Attend(Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, query_key: Tensor, values: Tensor, rows: Tensor, maps: Tensor,
        num_heads: int, dropout: Dropout | None,
    ) -> Tensor:  # fmt: skip
        states, query_key, values = _contiguous(states, query_key, values)
        rows, maps = _contiguous(rows, maps)
        num_queries, num_entities, width = states.shape
        head_width, out = width // num_heads, torch.empty_like(states)
        sums = states.new_empty(num_queries, head_width + 2, width)
        scratch = _rows(width, ATTEND_ROWS)
        lengths, masses = states.new_empty(2, BLOCK * num_heads)
        threshold, scale, mask = _dropout(dropout)
        compiled_kernel("attend_forward", width, head_width)(
            states.data_ptr(), query_key.data_ptr(), values.data_ptr(), values.data_ptr(),
            rows.data_ptr(), maps.data_ptr(), mask, sums.data_ptr(), sums.data_ptr(),
            scratch.data_ptr(), scratch.data_ptr(), lengths.data_ptr(), masses.data_ptr(),
            out.data_ptr(), num_queries, num_entities, threshold, scale,
        )  # fmt: skip
        ctx.save_for_backward(states, query_key, values, rows, maps, sums)
        ctx.rest = num_heads, dropout
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, query_key, values, rows, maps, sums = ctx.saved_tensors
        num_heads, dropout = ctx.rest
        num_queries, num_entities, width = states.shape
        gradient, head_width = gradient.contiguous(), width // num_heads
        d_states, d_query_key, d_values = (torch.empty_like(states) for _ in range(3))
        d_rows, d_maps = torch.zeros_like(rows), torch.zeros_like(maps)
        d_sums, maps_t = _rows(width, head_width + 2), torch.empty_like(maps)
        sums_t, gathered = _rows(width, head_width), _rows(width, BLOCK)
        scratch = _rows(width, ATTEND_ROWS)
        lengths, masses = states.new_empty(2, BLOCK * num_heads)
        threshold, scale, mask = _dropout(dropout)
        compiled_kernel("attend_backward", width, head_width)(
            states.data_ptr(), query_key.data_ptr(), values.data_ptr(), values.data_ptr(),
            rows.data_ptr(), maps.data_ptr(), maps_t.data_ptr(), mask,
            sums.data_ptr(), gradient.data_ptr(),
            d_states.data_ptr(), d_query_key.data_ptr(), d_values.data_ptr(), d_rows.data_ptr(),
            d_maps.data_ptr(), d_sums.data_ptr(), d_sums.data_ptr(), sums_t.data_ptr(),
            scratch.data_ptr(), scratch.data_ptr(), gathered.data_ptr(), gathered.data_ptr(),
            lengths.data_ptr(), masses.data_ptr(), num_queries, num_entities, threshold, scale,
        )  # fmt: skip
        return d_states, d_query_key, d_values, d_rows, d_maps, None, None


class _Score(Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, rows: Tensor, maps: Tensor, bias: Tensor) -> Tensor:
        states, rows, maps = _contiguous(states, rows, maps)
        width, out = states.shape[-1], states.new_empty(states.shape[:-1])
        scratch = _rows(width, 2 * BLOCK)
        compiled_kernel("score_forward", width)(
            states.data_ptr(), rows.data_ptr(), maps.data_ptr(), out.data_ptr(),
            scratch.data_ptr(), out.numel(), bias.item(),
        )  # fmt: skip
        ctx.save_for_backward(states, rows, maps)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, rows, maps = ctx.saved_tensors
        gradient, width = gradient.contiguous(), states.shape[-1]
        d_states, transposed = torch.empty_like(states), torch.empty_like(maps)
        d_rows, d_maps = torch.zeros_like(rows), torch.zeros_like(maps)
        scratch = _rows(width, 4 * BLOCK)
        compiled_kernel("score_backward", width)(
            states.data_ptr(), rows.data_ptr(), maps.data_ptr(), transposed.data_ptr(),
            gradient.data_ptr(), d_states.data_ptr(), d_rows.data_ptr(), d_maps.data_ptr(),
            scratch.data_ptr(), gradient.numel(),
        )  # fmt: skip
        return d_states, d_rows, d_maps, gradient.sum().reshape(1)


def _contiguous(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(tensor.contiguous() for tensor in tensors)


def _dropout(dropout: Dropout | None) -> tuple[int, float, int]:
    """Returns the threshold of a byte, the scale of what stays, and the bytes' address."""
    if dropout is None:
        return 0, 1.0, 0
    return dropout.threshold, dropout.scale, dropout.random_bytes.data_ptr()
