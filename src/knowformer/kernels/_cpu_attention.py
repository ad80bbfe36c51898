"""Kernels of the attention (eq. 8 to 10, linear similarity), feed-forward and norms (eq. 11).

For V rows of a query and each head, with unit vectors q_u and k_w:
    gathered_u = [V * v_u + sum v + q_u (k^T v)] / [2 V + q_u . sum k]
    a = LayerNorm(x + gathered), out = LayerNorm(a + contract(relu(expand(a))))

Two passes over the rows: the first makes the sums k^T v, sum k and sum v, the second the rest. Sums
are made chunk by chunk and the chunks added in order, so that several threads may make one query's.
Vectors are bq, bk, gamma1, beta1, b1, b2, gamma2, beta2; matrices wq, wk, w1, w2.
"""

# pyright: basic

import numpy as np

from knowformer.kernels._cpu_stages import (
    BLOCK,
    TINY,
    add_rows,
    block_of,
    clear,
    copy,
    matmul,
    matmul_add,
    matmul_heads,
    matmul_masked,
    matmul_plain,
    normal_gradient,
    normalized,
    numba_function,
    outer,
    outer_heads,
    transpose,
    transpose_heads,
)
from knowformer.kernels._vectors import (
    add,
    at,
    div,
    fma,
    kept,
    load,
    mul,
    pick,
    pick_float,
    put,
    put_at,
    row_like,
    seen_as,
    shifted,
    store,
    total,
    width,
)

SUM_CHUNK = 85 * BLOCK  # rows whose sums are made together

# Blocks of scratch. Some are used again for something else once they are done with.
SOURCE, UNIT, GATHERED, A, HIDDEN, FEED_FORWARD, SCALE, D_HIDDEN, ZERO = (
    n * BLOCK for n in range(9)
)
NORMAL = GATHERED  # of the first norm
D_GATHERED, D_Q, D_QUERY_KEY = A, HIDDEN, FEED_FORWARD
VALUES, D_K, D_V = GATHERED, A, HIDDEN
SCRATCH_ROWS = 8 * BLOCK + 1


@numba_function
def _unit_heads(heads, first, n, lengths):
    """Scales each row of each head to unit length, and keeps the length it had."""
    for j in range(n):
        row = load(heads, first + j)
        length = max(np.sqrt(total(mul(row, row))), TINY)
        store(heads, first + j, div(row, row_like(row, length)))
        put(lengths, j, length)


@numba_function
def _unit_heads_backward(gradient, g, unit, u, n, lengths):
    """Gradient of ``_unit_heads``, in place."""
    for j in range(n):
        row, along = load(gradient, g + j), load(unit, u + j)
        projected = fma(along, row_like(row, -total(mul(row, along))), row)
        store(gradient, g + j, div(projected, row_like(row, pick_float(lengths, j))))


@numba_function
def _keys(query_key, vectors, matrices, scratch, head_scratch, lengths, first, n):
    """K at UNIT, its lengths kept; returns where the block's query_key states are."""
    d = width(query_key)
    heads = d // width(head_scratch)
    source, s = block_of(query_key, first, scratch, SOURCE, n)
    matmul(source, s, shifted(matrices, d), shifted(vectors, 1), scratch, UNIT, n)
    _unit_heads(head_scratch, UNIT * heads, n * heads, lengths)
    return source, s


def attention_sums(
    query_key, values, segments, vectors, matrices, sums, partial, head_scratch, lengths,
    num_queries, first_row, last_row,
):  # fmt: skip
    """Each query's sums over its rows from ``first_row`` to ``last_row``.

    They are k^T v of each head, C rows, then sum k and sum v, a row each.
    """
    scratch, value_heads = seen_as(head_scratch, values), seen_as(values, head_scratch)
    c, partial_heads = width(head_scratch), seen_as(partial, head_scratch)
    for b in range(num_queries):
        base, target = pick(segments, b), shifted(sums, b * (c + 2))
        last = min(pick(segments, b + 1) - base, last_row)
        clear(target, 0, c + 2)
        for chunk in range(first_row, last, SUM_CHUNK):
            clear(partial, 0, c + 2)
            end = min(chunk + SUM_CHUNK, last)
            for first in range(chunk, end, BLOCK):
                n = min(BLOCK, end - first)
                at_row = base + first
                _keys(query_key, vectors, matrices, scratch, head_scratch, lengths, at_row, n)
                outer_heads(scratch, UNIT, value_heads, at_row, partial_heads, n)
                add_rows(scratch, UNIT, shifted(partial, c), n)
                add_rows(values, at_row, shifted(partial, c + 1), n)
            for row in range(c + 2):
                store(target, row, add(load(target, row), load(partial, row)))


@numba_function
def _gather_block(
    query_key, vectors, matrices, sum_heads, scratch, head_scratch, value_heads, lengths, masses,
    first, n, num_rows,
):  # fmt: skip
    """Q at UNIT (its lengths kept) and what each entity gathers at GATHERED (its masses kept)."""
    d, c = width(query_key), width(head_scratch)
    heads = d // c
    count = np.float32(num_rows)
    source, s = block_of(query_key, first, scratch, SOURCE, n)
    matmul(source, s, matrices, vectors, scratch, UNIT, n)
    _unit_heads(head_scratch, UNIT * heads, n * heads, lengths)
    v_sum = shifted(sum_heads, d + heads)
    matmul_heads(scratch, UNIT, sum_heads, v_sum, scratch, GATHERED, n)
    for j in range(n):
        for h in range(heads):
            q = load(head_scratch, (UNIT + j) * heads + h)
            mass = count + count + total(mul(q, load(sum_heads, d + h)))
            value = load(value_heads, (first + j) * heads + h)
            at_row = (GATHERED + j) * heads + h
            gathered = fma(value, row_like(value, count), load(head_scratch, at_row))
            one_over_mass = np.float32(1.0) / mass
            store(head_scratch, at_row, mul(gathered, row_like(value, one_over_mass)))
            put(masses, j * heads + h, mass)


@numba_function
def _feed_forward_block(states, vectors, matrices, dropout, scratch, first, n, threshold, scale):
    """From GATHERED: the first norm at NORMAL, then A, HIDDEN and FEED_FORWARD.

    The scale of the first norm goes into lane 0 of the rows at SCALE.
    """
    d = width(states)
    gamma, beta = load(vectors, 2), load(vectors, 3)
    for j in range(n):
        row = add(load(states, first + j), load(scratch, GATHERED + j))
        normal, norm_scale = normalized(row)
        store(scratch, NORMAL + j, normal)
        store(scratch, A + j, fma(normal, gamma, beta))
        put_at(scratch, SCALE + j, 0, norm_scale)
    w1, w2 = shifted(matrices, 2 * d), shifted(matrices, 3 * d)
    matmul(scratch, A, w1, shifted(vectors, 4), scratch, HIDDEN, n, True)
    if threshold:
        for j in range(n):
            row = load(scratch, HIDDEN + j)
            store(scratch, HIDDEN + j, kept(row, dropout, first + j, threshold, scale))
    matmul(scratch, HIDDEN, w2, shifted(vectors, 5), scratch, FEED_FORWARD, n)


def attend_forward(
    states, query_key, values, segments, vectors, matrices, dropout, sums, out, head_scratch,
    lengths, masses, num_queries, first_row, last_row, threshold, scale,
):  # fmt: skip
    """Takes the sums of all rows; makes rows ``first_row`` to ``last_row`` of each segment."""
    scratch, value_heads = seen_as(head_scratch, states), seen_as(values, head_scratch)
    c = width(head_scratch)
    gamma, beta = load(vectors, 6), load(vectors, 7)
    for b in range(num_queries):
        base = pick(segments, b)
        num_rows = pick(segments, b + 1) - base
        last = min(num_rows, last_row)
        sum_heads = seen_as(shifted(sums, b * (c + 2)), head_scratch)
        for first in range(first_row, last, BLOCK):
            n = min(BLOCK, last - first)
            at_row = base + first
            _gather_block(
                query_key, vectors, matrices, sum_heads, scratch, head_scratch, value_heads,
                lengths, masses, at_row, n, num_rows,
            )  # fmt: skip
            _feed_forward_block(
                states, vectors, matrices, dropout, scratch, at_row, n, threshold, scale
            )
            for j in range(n):
                row = add(load(scratch, A + j), load(scratch, FEED_FORWARD + j))
                normal, _ = normalized(row)
                store(out, at_row + j, fma(normal, gamma, beta))


@numba_function
def _feed_forward_backward(
    gradient, vectors, transposed, d_vectors, d_matrices, scratch, first, n, scale
):
    """Gradient of the layer's output back to what was gathered, at D_GATHERED."""
    d = width(gradient)
    gamma1, gamma2 = load(vectors, 2), load(vectors, 6)
    d_gamma = d_beta = row_like(gamma2, np.float32(0.0))
    for j in range(n):
        g = load(gradient, first + j)
        row = add(load(scratch, A + j), load(scratch, FEED_FORWARD + j))
        normal, norm_scale = normalized(row)
        d_gamma = fma(g, normal, d_gamma)
        d_beta = add(d_beta, g)
        store(scratch, FEED_FORWARD + j, normal_gradient(mul(g, gamma2), normal, norm_scale))
    store(d_vectors, 6, add(load(d_vectors, 6), d_gamma))
    store(d_vectors, 7, add(load(d_vectors, 7), d_beta))
    add_rows(scratch, FEED_FORWARD, shifted(d_vectors, 5), n)
    outer(scratch, HIDDEN, scratch, FEED_FORWARD, shifted(d_matrices, 3 * d), n)
    # The hidden row is positive just where ReLU and dropout both let it through.
    w2t = shifted(transposed, 3 * d)
    matmul_masked(scratch, FEED_FORWARD, w2t, scratch, HIDDEN, scratch, D_HIDDEN, n)
    if scale != np.float32(1.0):
        for j in range(n):
            row = load(scratch, D_HIDDEN + j)
            store(scratch, D_HIDDEN + j, mul(row, row_like(row, scale)))
    add_rows(scratch, D_HIDDEN, shifted(d_vectors, 4), n)
    outer(scratch, A, scratch, D_HIDDEN, shifted(d_matrices, 2 * d), n)
    matmul_add(scratch, D_HIDDEN, shifted(transposed, 2 * d), scratch, FEED_FORWARD, n)
    d_gamma = d_beta = row_like(gamma1, np.float32(0.0))
    for j in range(n):
        g, normal = load(scratch, FEED_FORWARD + j), load(scratch, NORMAL + j)
        d_gamma = fma(g, normal, d_gamma)
        d_beta = add(d_beta, g)
        norm_scale = at(scratch, SCALE + j, 0)
        store(scratch, D_GATHERED + j, normal_gradient(mul(g, gamma1), normal, norm_scale))
    store(d_vectors, 2, add(load(d_vectors, 2), d_gamma))
    store(d_vectors, 3, add(load(d_vectors, 3), d_beta))


@numba_function
def _gather_backward(
    query_key, sum_heads, sums_t, transposed, gathered_heads, d_sums, d_sum_heads, d_vectors,
    d_matrices, d_values, d_query_key, d_states, scratch, head_scratch, lengths, masses,
    first, n, num_rows,
):  # fmt: skip
    """From D_GATHERED: gradients of states, values, q and the sums.

    ``gathered_heads`` holds what each entity gathered, for the gradient of its mass, which then
    takes the mass's place.
    """
    d, c = width(query_key), width(head_scratch)
    heads = d // c
    count = np.float32(num_rows)
    for j in range(n):
        store(d_states, first + j, load(scratch, D_GATHERED + j))
        for h in range(heads):
            at_row = (D_GATHERED + j) * heads + h
            one_over_mass = np.float32(1.0) / pick_float(masses, j * heads + h)
            g = load(head_scratch, at_row)
            d_mass = -total(mul(g, load(gathered_heads, j * heads + h))) * one_over_mass
            store(head_scratch, at_row, mul(g, row_like(g, one_over_mass)))
            put(masses, j * heads + h, d_mass)
            q = load(head_scratch, (UNIT + j) * heads + h)
            store(d_sum_heads, d + h, fma(q, row_like(g, d_mass), load(d_sum_heads, d + h)))
        g = load(scratch, D_GATHERED + j)
        store(d_values, first + j, mul(g, row_like(g, count)))
    add_rows(scratch, D_GATHERED, shifted(d_sums, c + 1), n)
    outer_heads(scratch, UNIT, head_scratch, D_GATHERED, d_sum_heads, n)
    zero = shifted(head_scratch, ZERO * heads)
    matmul_heads(scratch, D_GATHERED, sums_t, zero, scratch, D_Q, n)
    for j in range(n):
        for h in range(heads):
            at_row = (D_Q + j) * heads + h
            k_sum = load(sum_heads, d + h)
            d_mass = row_like(k_sum, pick_float(masses, j * heads + h))
            store(head_scratch, at_row, fma(k_sum, d_mass, load(head_scratch, at_row)))
    _unit_heads_backward(head_scratch, D_Q * heads, head_scratch, UNIT * heads, n * heads, lengths)
    source, s = block_of(query_key, first, scratch, SOURCE, n)
    add_rows(scratch, D_Q, d_vectors, n)
    outer(source, s, scratch, D_Q, d_matrices, n)
    matmul_plain(scratch, D_Q, transposed, scratch, D_QUERY_KEY, n)
    copy(scratch, D_QUERY_KEY, d_query_key, first, n)


@numba_function
def _keys_backward(
    query_key, values, vectors, matrices, transposed, d_sum_heads, d_sums_t, d_vectors, d_matrices,
    d_values, d_query_key, scratch, head_scratch, lengths, first, n,
):  # fmt: skip
    """What the sums owe to each key and value."""
    d = width(values)
    heads = d // width(head_scratch)
    source, s = _keys(query_key, vectors, matrices, scratch, head_scratch, lengths, first, n)
    block, v = block_of(values, first, scratch, VALUES, n)
    matmul_heads(block, v, d_sums_t, shifted(d_sum_heads, d), scratch, D_K, n)
    _unit_heads_backward(head_scratch, D_K * heads, head_scratch, UNIT * heads, n * heads, lengths)
    v_sum = shifted(d_sum_heads, d + heads)
    matmul_heads(scratch, UNIT, d_sum_heads, v_sum, scratch, D_V, n)
    for j in range(n):
        row = add(load(d_values, first + j), load(scratch, D_V + j))
        store(d_values, first + j, row)
    add_rows(scratch, D_K, shifted(d_vectors, 1), n)
    outer(source, s, scratch, D_K, shifted(d_matrices, d), n)
    wkt = shifted(transposed, d)
    if n == BLOCK:
        matmul_add(scratch, D_K, wkt, d_query_key, first, n)
    else:
        copy(d_query_key, first, scratch, D_QUERY_KEY, n)
        matmul_add(scratch, D_K, wkt, scratch, D_QUERY_KEY, n)
        copy(scratch, D_QUERY_KEY, d_query_key, first, n)


def attend_backward(
    states, query_key, values, segments, vectors, matrices, dropout, sums, gradient,
    d_states, d_query_key, d_values, d_vectors, d_matrices,
    d_sums, sums_t, transposed, gathered, head_scratch, lengths, masses,
    num_queries, threshold, scale,
):  # fmt: skip
    """Gradients of ``attend_forward``, whose ``sums`` it takes; the rest is computed again."""
    scratch, value_heads = seen_as(head_scratch, states), seen_as(values, head_scratch)
    d_sum_heads, sum_heads_t = seen_as(d_sums, head_scratch), seen_as(sums_t, head_scratch)
    d, c = width(states), width(head_scratch)
    for number in range(4):
        transpose(matrices, number * d, transposed, number * d)
    clear(scratch, ZERO, 1)
    for b in range(num_queries):
        base = pick(segments, b)
        num_rows = pick(segments, b + 1) - base
        sum_heads = seen_as(shifted(sums, b * (c + 2)), head_scratch)
        transpose_heads(sum_heads, sum_heads_t, d)
        clear(d_sums, 0, c + 2)
        for first in range(0, num_rows, BLOCK):
            n = min(BLOCK, num_rows - first)
            at_row = base + first
            _gather_block(
                query_key, vectors, matrices, sum_heads, scratch, head_scratch, value_heads,
                lengths, masses, at_row, n, num_rows,
            )  # fmt: skip
            copy(scratch, GATHERED, gathered, 0, n)
            _feed_forward_block(
                states, vectors, matrices, dropout, scratch, at_row, n, threshold, scale
            )
            _feed_forward_backward(
                gradient, vectors, transposed, d_vectors, d_matrices, scratch, at_row, n, scale
            )
            _gather_backward(
                query_key, sum_heads, sum_heads_t, transposed, seen_as(gathered, head_scratch),
                d_sums, d_sum_heads, d_vectors, d_matrices, d_values, d_query_key, d_states,
                scratch, head_scratch, lengths, masses, at_row, n, num_rows,
            )  # fmt: skip
        transpose_heads(d_sum_heads, sum_heads_t, d)
        for first in range(0, num_rows, BLOCK):
            n = min(BLOCK, num_rows - first)
            _keys_backward(
                query_key, values, vectors, matrices, transposed, d_sum_heads, sum_heads_t,
                d_vectors, d_matrices, d_values, d_query_key, scratch, head_scratch, lengths,
                base + first, n,
            )  # fmt: skip
