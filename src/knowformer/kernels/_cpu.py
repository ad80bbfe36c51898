"""The CPU backend: torch tensors and autograd around the compiled kernels.

Float32 states of width 16, 32 or 64 run here; anything else goes to the reference, which is
slower and right. One autograd function per operation: it saves inputs and what the backward pass
would otherwise have to sum over all edges again.
"""

# pyright: basic

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
ATTEND_BLOCKS = 8  # blocks of scratch rows that attention uses; the other kernels use fewer


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
        layers, norm = len(weights.linear), weights.norm
        zero = torch.zeros_like(weights.self_weight)
        biases = [bias for _, bias in weights.linear]
        rows = [weights.self_weight, *biases, *[zero] * (3 - layers), *(norm or (zero, zero)), zero]
        mats = torch.cat([weight for weight, _ in weights.linear])
        return _Hop.apply(
            states, relation_vectors, torch.stack(rows), mats, edges, layers, norm is not None
        )

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
        bonus = weights.head_bonus
        return _Input.apply(
            states,
            extra,
            torch.zeros_like(extra[0]) if bonus is None else bonus,
            heads,
            torch.cat([weights.first, weights.second]),
            weights.bias,
            num_entities,
        )

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
        (wq, bq), (wk, bk) = weights.query, weights.key
        (w1, b1), (w2, b2) = weights.expand, weights.contract
        rows = torch.stack([bq, bk, *weights.attention_norm, b1, b2, *weights.output_norm])
        mats = torch.cat([wq, wk, w1, w2])
        return _Attend.apply(states, query_key_states, value_states, rows, mats, num_heads, dropout)

    def score(self, states: Tensor, weights: ScoreWeights) -> Tensor:
        """See ``Backend.score``."""
        if not _fits(states):
            return super().score(states, weights)
        (w1, b1), (w2, b2) = weights.hidden, weights.last
        return _Score.apply(states, torch.stack([b1, w2[0]]), w1, b2)


def _fits(states: Tensor) -> bool:
    return states.dtype == torch.float32 and states.shape[-1] in WIDTHS


def _scratch(width: int, blocks: int) -> Tensor:
    return torch.empty(blocks * BLOCK, width)


def _transposed(mats: Tensor) -> Tensor:
    """Transposes each D x D matrix of a stack: torch keeps (out x in), kernels take (in x out)."""
    width = mats.shape[1]
    return mats.view(-1, width, width).mT.reshape(-1, width)


class _Hop(Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, relations: Tensor, rows: Tensor, mats: Tensor,
        edges: Edges, layers: int, norm: bool,
    ) -> Tensor:  # fmt: skip
        states, relations, mats = states.contiguous(), relations.contiguous(), mats.contiguous()
        num_queries, num_entities, width = states.shape
        keep = any(ctx.needs_input_grad)
        pre = torch.empty_like(states) if keep else states
        out, mats_in = torch.empty_like(states), _transposed(mats)
        scratch = _scratch(width, 4)
        compiled_kernel("hop_forward", width)(
            states.data_ptr(), relations.data_ptr(), edges.offsets.data_ptr(),
            edges.sender.data_ptr(), edges.relation.data_ptr(), rows.data_ptr(),
            mats_in.data_ptr(), pre.data_ptr(), out.data_ptr(), scratch.data_ptr(),
            num_queries, num_entities, relations.shape[1], layers, norm, keep,
        )  # fmt: skip
        if keep:
            ctx.save_for_backward(states, relations, rows, mats, mats_in, pre)
            ctx.rest = edges, layers, norm
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, relations, rows, mats, mats_in, pre = ctx.saved_tensors
        edges, layers, norm = ctx.rest
        num_queries, num_entities, width = states.shape
        gradient = gradient.contiguous()
        d_states, d_relations = torch.empty_like(states), torch.zeros_like(relations)
        d_rows, d_mats = torch.zeros_like(rows), torch.zeros_like(mats)
        d_pre, scratch = states.new_empty(num_entities, width), _scratch(width, 5)
        compiled_kernel("hop_backward", width)(
            states.data_ptr(), relations.data_ptr(), pre.data_ptr(), gradient.data_ptr(),
            edges.sender_offsets.data_ptr(), edges.message_offsets.data_ptr(),
            edges.message_relation.data_ptr(), edges.receiver.data_ptr(),
            rows.data_ptr(), mats_in.data_ptr(), mats.data_ptr(),
            d_pre.data_ptr(), d_states.data_ptr(), d_relations.data_ptr(), d_rows.data_ptr(),
            d_mats.data_ptr(), scratch.data_ptr(),
            num_queries, num_entities, relations.shape[1], layers, norm,
        )  # fmt: skip
        return d_states, d_relations, d_rows, _transposed(d_mats), None, None, None


class _Input(Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor | None, extra: Tensor, bonus: Tensor, heads: Tensor,
        mats: Tensor, bias: Tensor, num_entities: int,
    ) -> Tensor:  # fmt: skip
        width, num_queries = extra.shape[-1], len(heads)
        states = None if states is None else states.contiguous()
        extra, bonus, mats, bias = (t.contiguous() for t in (extra, bonus, mats, bias))
        out = extra.new_empty(num_queries, num_entities, width)
        mats_in, scratch, heads = _transposed(mats), _scratch(width, 2), heads.contiguous()
        compiled_kernel("input_forward", width)(
            0 if states is None else states.data_ptr(), extra.data_ptr(), bonus.data_ptr(),
            heads.data_ptr(), mats_in.data_ptr(), bias.data_ptr(), out.data_ptr(),
            scratch.data_ptr(), num_queries, num_entities, len(extra) == 1, states is not None,
        )  # fmt: skip
        ctx.save_for_backward(states, extra, bonus, heads, mats, mats_in)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, extra, bonus, heads, mats, mats_in = ctx.saved_tensors
        gradient = gradient.contiguous()
        num_queries, num_entities, width = gradient.shape
        d_states = None if states is None else torch.empty_like(states)
        d_extra, d_bonus, d_mats = map(torch.zeros_like, (extra, bonus, mats))
        d_bias, zero, scratch = bonus.new_zeros(width), bonus.new_zeros(width), _scratch(width, 4)
        compiled_kernel("input_backward", width)(
            0 if states is None else states.data_ptr(), extra.data_ptr(), bonus.data_ptr(),
            heads.data_ptr(), mats_in.data_ptr(), mats.data_ptr(), zero.data_ptr(),
            gradient.data_ptr(), 0 if d_states is None else d_states.data_ptr(),
            d_extra.data_ptr(), d_bonus.data_ptr(), d_mats.data_ptr(), d_bias.data_ptr(),
            scratch.data_ptr(), num_queries, num_entities, len(extra) == 1, states is not None,
        )  # fmt: skip
        return d_states, d_extra, d_bonus, None, _transposed(d_mats), d_bias, None


class _Attend(Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, query_key: Tensor, values: Tensor, rows: Tensor, mats: Tensor,
        num_heads: int, dropout: Dropout | None,
    ) -> Tensor:  # fmt: skip
        states, query_key, values = (t.contiguous() for t in (states, query_key, values))
        mats = mats.contiguous()
        num_queries, num_entities, width = states.shape
        mats_in, out = _transposed(mats), torch.empty_like(states)
        sums = states.new_empty(num_queries, width + 2, width)
        scratch = _scratch(width, ATTEND_BLOCKS)
        lengths, masses = states.new_empty(2, BLOCK * num_heads)
        threshold, scale, mask = _dropout(dropout)
        compiled_kernel("attend_forward", width, width // num_heads)(
            states.data_ptr(), query_key.data_ptr(), values.data_ptr(), values.data_ptr(),
            rows.data_ptr(), mats_in.data_ptr(), mask, sums.data_ptr(), sums.data_ptr(),
            scratch.data_ptr(), scratch.data_ptr(), lengths.data_ptr(), masses.data_ptr(),
            out.data_ptr(), num_queries, num_entities, threshold, scale,
        )  # fmt: skip
        ctx.save_for_backward(states, query_key, values, rows, mats, mats_in, sums)
        ctx.rest = num_heads, dropout
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, query_key, values, rows, mats, mats_in, sums = ctx.saved_tensors
        num_heads, dropout = ctx.rest
        num_queries, num_entities, width = states.shape
        gradient = gradient.contiguous()
        d_states, d_query_key, d_values = (torch.empty_like(states) for _ in range(3))
        d_rows, d_mats = torch.zeros_like(rows), torch.zeros_like(mats)
        d_sums, zero = states.new_empty(width + 2, width), states.new_zeros(width)
        transposed, gathered = states.new_empty(width, width), _scratch(width, 1)
        scratch = _scratch(width, ATTEND_BLOCKS)
        lengths, masses = states.new_empty(2, BLOCK * num_heads)
        threshold, scale, mask = _dropout(dropout)
        compiled_kernel("attend_backward", width, width // num_heads)(
            states.data_ptr(), query_key.data_ptr(), values.data_ptr(), values.data_ptr(),
            rows.data_ptr(), mats_in.data_ptr(), mats.data_ptr(), zero.data_ptr(), mask,
            sums.data_ptr(), sums.data_ptr(), gradient.data_ptr(),
            d_states.data_ptr(), d_query_key.data_ptr(), d_values.data_ptr(), d_rows.data_ptr(),
            d_mats.data_ptr(), d_sums.data_ptr(), d_sums.data_ptr(), transposed.data_ptr(),
            scratch.data_ptr(), scratch.data_ptr(), gathered.data_ptr(), gathered.data_ptr(),
            lengths.data_ptr(), masses.data_ptr(), num_queries, num_entities, threshold, scale,
        )  # fmt: skip
        return d_states, d_query_key, d_values, d_rows, _transposed(d_mats), None, None


class _Score(Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, rows: Tensor, mat: Tensor, bias: Tensor) -> Tensor:
        states, mat, width = states.contiguous(), mat.contiguous(), states.shape[-1]
        mat_in, out, scratch = (
            mat.t().contiguous(),
            states.new_empty(states.shape[:-1]),
            _scratch(width, 2),
        )
        compiled_kernel("score_forward", width)(
            states.data_ptr(), rows.data_ptr(), mat_in.data_ptr(), out.data_ptr(),
            scratch.data_ptr(), out.numel(), bias.item(),
        )  # fmt: skip
        ctx.save_for_backward(states, rows, mat, mat_in)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, rows, mat, mat_in = ctx.saved_tensors
        gradient, width = gradient.contiguous(), states.shape[-1]
        d_states, d_rows, d_mat = (
            torch.empty_like(states),
            torch.zeros_like(rows),
            torch.zeros_like(mat),
        )
        zero, scratch = states.new_zeros(width), _scratch(width, 4)
        compiled_kernel("score_backward", width)(
            states.data_ptr(), rows.data_ptr(), mat_in.data_ptr(), mat.data_ptr(), zero.data_ptr(),
            gradient.data_ptr(), d_states.data_ptr(), d_rows.data_ptr(), d_mat.data_ptr(),
            scratch.data_ptr(), gradient.numel(),
        )  # fmt: skip
        return d_states, d_rows, d_mat.t(), gradient.sum().reshape(1)


def _dropout(dropout: Dropout | None) -> tuple[int, float, int]:
    """Returns the threshold of a byte, the scale of what stays, and the bytes' address."""
    if dropout is None:
        return 0, 1.0, 0
    return dropout.threshold, dropout.scale, dropout.random_bytes.data_ptr()
