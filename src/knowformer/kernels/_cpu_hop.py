"""Kernels of one hop (eq. 6 and 7): gather, multiply by relation, sum, update; and its gradients.

    pre_u = self_weight * z_u + sum over edges r(v, u) of z_v * relation_vector_r
    out_u = z_u + LayerNorm(update(pre_u)), or update(pre_u) in the paper's form

The derivation of the gradients is in docs/concepts/kernels.md.
"""

# pyright: basic

import numpy as np

from knowformer.kernels._cpu_stages import (
    BLOCK,
    add_rows,
    block_of,
    centre,
    copy,
    matmul,
    matmul_masked,
    matmul_plain,
    numba_function,
    outer,
    transpose,
    unit_variance,
)
from knowformer.kernels._vectors import (
    add,
    fma,
    load,
    mul,
    pick,
    row_like,
    shifted,
    store,
    sub,
    total,
    width,
)

# Blocks of scratch.
PRE, HIDDEN, HIDDEN_2, UPDATE, GRADIENT = 0, BLOCK, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK


@numba_function
def prepare_update(vectors, matrices, prepared, num_maps, norm):
    """Copies matrices, then biases, to ``prepared``; before a norm the last ones lose their mean.

    LayerNorm takes its input's mean off; a map whose rows have mean 0 gives rows that have none.
    """
    d = width(vectors)
    copy(matrices, 0, prepared, 0, num_maps * d)
    copy(vectors, 1, prepared, num_maps * d, num_maps)
    if norm:
        centre(prepared, (num_maps - 1) * d, prepared, (num_maps - 1) * d, d)
        last = num_maps * d + num_maps - 1
        centre(prepared, last, prepared, last, 1)


@numba_function
def update_block(source, s, scratch, prepared, num_maps, n):
    """From rows of ``source``: hidden layers at HIDDEN (and HIDDEN_2), the result at UPDATE."""
    d = width(scratch)
    biases = shifted(prepared, num_maps * d)
    matmul(source, s, prepared, biases, scratch, HIDDEN, n, True)
    w2, b2 = shifted(prepared, d), shifted(biases, 1)
    if num_maps == 2:
        matmul(scratch, HIDDEN, w2, b2, scratch, UPDATE, n)
    else:
        matmul(scratch, HIDDEN, w2, b2, scratch, HIDDEN_2, n, True)
        w3, b3 = shifted(prepared, 2 * d), shifted(biases, 2)
        matmul(scratch, HIDDEN_2, w3, b3, scratch, UPDATE, n)


def hop_forward(
    states, relation_vectors, offsets, sender, relation, segments, starts, vectors, matrices,
    pre, out, prepared, scratch,
    num_queries, num_relations, num_maps, norm, keep, first_row, last_row,
):  # fmt: skip
    """Only rows ``first_row`` to ``last_row`` of each segment are made; ``pre`` if ``keep``."""
    prepare_update(vectors, matrices, prepared, num_maps, norm)
    self_weight = load(vectors, 0)
    gamma = beta = self_weight
    if norm:
        gamma, beta = load(vectors, num_maps + 1), load(vectors, num_maps + 2)
    for b in range(num_queries):
        base, relation_base = pick(segments, b), b * num_relations
        entity = pick(starts, b)
        last = min(pick(segments, b + 1) - base, last_row)
        for first in range(first_row, last, BLOCK):
            n = min(BLOCK, last - first)
            for j in range(n):
                u = first + j
                acc = mul(self_weight, load(states, base + u))
                for e in range(pick(offsets, entity + u), pick(offsets, entity + u + 1)):
                    message = load(states, base + pick(sender, e))
                    vector = load(relation_vectors, relation_base + pick(relation, e))
                    acc = fma(message, vector, acc)
                store(scratch, PRE + j, acc)
                if keep:
                    store(pre, base + u, acc)
            update_block(scratch, PRE, scratch, prepared, num_maps, n)
            for j in range(n):
                row = load(scratch, UPDATE + j)
                if norm:
                    normal, _ = unit_variance(row)
                    row = add(load(states, base + first + j), fma(normal, gamma, beta))
                store(out, base + first + j, row)


def hop_backward(
    states, relation_vectors, pre, gradient, sender_offsets, message_offsets, message_relation,
    receiver, segments, starts, vectors, matrices,
    d_states, d_relation_vectors, d_vectors, d_matrices, prepared, transposed, d_pre, scratch,
    num_queries, num_relations, num_maps, norm, max_rows,
):  # fmt: skip
    """Gradients of ``hop_forward``; ``d_pre`` holds one query's rows at a time."""
    d = width(states)
    prepare_update(vectors, matrices, prepared, num_maps, norm)
    for number in range(num_maps):
        transpose(prepared, number * d, transposed, number * d)
    self_weight = load(vectors, 0)
    for b in range(num_queries):
        base, relation_base = pick(segments, b), b * num_relations
        num_rows = pick(segments, b + 1) - base
        for first in range(0, num_rows, BLOCK):
            n = min(BLOCK, num_rows - first)
            source, s = block_of(pre, base + first, scratch, PRE, n)
            update_block(source, s, scratch, prepared, num_maps, n)
            _update_backward(
                source, s, gradient, base + first, vectors, transposed, d_vectors, d_matrices,
                scratch, num_maps, norm, n,
            )  # fmt: skip
            d_self = row_like(self_weight, np.float32(0.0))
            for j in range(n):
                row = load(scratch, UPDATE + j)
                store(d_pre, first + j, row)
                d_self = fma(row, load(states, base + first + j), d_self)
                row = mul(row, self_weight)
                if norm:
                    row = add(row, load(gradient, base + first + j))
                store(d_states, base + first + j, row)
            store(d_vectors, 0, add(load(d_vectors, 0), d_self))
        _scatter(
            states, relation_vectors, d_pre, sender_offsets, message_offsets, message_relation,
            receiver, d_states, d_relation_vectors, base, relation_base, pick(starts, b), num_rows,
        )  # fmt: skip
    if norm:
        # What was summed is the gradient of the centred map.
        centre(d_matrices, (num_maps - 1) * d, d_matrices, (num_maps - 1) * d, d)
        centre(d_vectors, num_maps, d_vectors, num_maps, 1)


@numba_function
def _update_backward(
    source, s, gradient, first, vectors, transposed, d_vectors, d_matrices, scratch, num_maps, norm,
    n,
):  # fmt: skip
    """From the gradient of a hop's output: that of its weights, and of ``pre`` at UPDATE."""
    d = width(scratch)
    above, g = block_of(gradient, first, scratch, GRADIENT, n)
    if norm:
        gamma, d_norm = load(vectors, num_maps + 1), shifted(d_vectors, num_maps + 1)
        _norm_backward(above, g, gamma, d_norm, scratch, n)
        above, g = scratch, GRADIENT
    if num_maps == 3:
        add_rows(above, g, shifted(d_vectors, 3), n)
        outer(scratch, HIDDEN_2, above, g, shifted(d_matrices, 2 * d), n)
        w3t = shifted(transposed, 2 * d)
        matmul_masked(above, g, w3t, scratch, HIDDEN_2, scratch, UPDATE, n)
        above, g = scratch, UPDATE
    add_rows(above, g, shifted(d_vectors, 2), n)
    outer(scratch, HIDDEN, above, g, shifted(d_matrices, d), n)
    matmul_masked(above, g, shifted(transposed, d), scratch, HIDDEN, scratch, HIDDEN_2, n)
    add_rows(scratch, HIDDEN_2, shifted(d_vectors, 1), n)
    outer(source, s, scratch, HIDDEN_2, d_matrices, n)
    matmul_plain(scratch, HIDDEN_2, transposed, scratch, UPDATE, n)


@numba_function
def _norm_backward(above, g, gamma, d_norm, scratch, n):
    """Gradient of the rows at UPDATE before their norm, but for its mean, at GRADIENT."""
    d_gamma = d_beta = row_like(gamma, np.float32(0.0))
    one_over_width = np.float32(1.0) / np.float32(width(scratch))
    for j in range(n):
        row = load(above, g + j)
        normal, scale = unit_variance(load(scratch, UPDATE + j))
        d_gamma = fma(row, normal, d_gamma)
        d_beta = add(d_beta, row)
        row = mul(row, gamma)
        along = total(mul(row, normal)) * one_over_width
        rest = sub(row, mul(normal, row_like(normal, along)))
        store(scratch, GRADIENT + j, mul(rest, row_like(normal, scale)))
    store(d_norm, 0, add(load(d_norm, 0), d_gamma))
    store(d_norm, 1, add(load(d_norm, 1), d_beta))


@numba_function
def _scatter(
    states, relation_vectors, d_pre, sender_offsets, message_offsets, message_relation, receiver,
    d_states, d_relation_vectors, base, relation_base, entity, num_rows,
):  # fmt: skip
    """Gradients back along the edges: gathered per message, so each is written once."""
    for v in range(num_rows):
        acc, state = load(d_states, base + v), load(states, base + v)
        first, last = pick(sender_offsets, entity + v), pick(sender_offsets, entity + v + 1)
        for m in range(first, last):
            e, end = pick(message_offsets, m), pick(message_offsets, m + 1)
            if e == end:
                continue
            g = load(d_pre, pick(receiver, e))
            for other in range(e + 1, end):
                g = add(g, load(d_pre, pick(receiver, other)))
            r = relation_base + pick(message_relation, m)
            acc = fma(g, load(relation_vectors, r), acc)
            store(d_relation_vectors, r, fma(g, state, load(d_relation_vectors, r)))
        store(d_states, base + v, acc)
