"""Kernels of the score: relu(x @ w1 + b1) . w2 + bias, and its gradients."""

# pyright: basic

from knowformer.kernels._cpu_stages import (
    BLOCK,
    add_rows,
    block_of,
    copy,
    matmul,
    matmul_plain,
    outer,
    transpose,
)
from knowformer.kernels._vectors import (
    load,
    mul,
    pick_float,
    put,
    row_like,
    shifted,
    store,
    total,
    where_positive,
)

# Blocks of scratch.
STATES, HIDDEN, D_HIDDEN, D_STATES = 0, BLOCK, 2 * BLOCK, 3 * BLOCK


def score_forward(states, vectors, matrices, out, scratch, first_row, last_row, bias):
    """``vectors``: b1, w2. Rows ``first_row`` to ``last_row`` are scored."""
    w2 = load(vectors, 1)
    for first in range(first_row, last_row, BLOCK):
        n = min(BLOCK, last_row - first)
        source, s = block_of(states, first, scratch, STATES, n)
        matmul(source, s, matrices, vectors, scratch, HIDDEN, n, True)
        for j in range(n):
            put(out, first + j, total(mul(load(scratch, HIDDEN + j), w2)) + bias)


def score_backward(
    states, vectors, matrices, gradient, d_states, d_vectors, d_matrices, transposed, scratch,
    num_rows,
):  # fmt: skip
    """Gradients of ``score_forward``; that of the bias is the sum of ``gradient``."""
    w2 = load(vectors, 1)
    transpose(matrices, 0, transposed, 0)
    for first in range(0, num_rows, BLOCK):
        n = min(BLOCK, num_rows - first)
        source, s = block_of(states, first, scratch, STATES, n)
        matmul(source, s, matrices, vectors, scratch, HIDDEN, n, True)
        for j in range(n):
            hidden, g = load(scratch, HIDDEN + j), row_like(w2, pick_float(gradient, first + j))
            store(scratch, D_HIDDEN + j, where_positive(hidden, mul(g, w2)))
            store(scratch, HIDDEN + j, mul(hidden, g))
        add_rows(scratch, HIDDEN, shifted(d_vectors, 1), n)
        add_rows(scratch, D_HIDDEN, d_vectors, n)
        outer(source, s, scratch, D_HIDDEN, d_matrices, n)
        matmul_plain(scratch, D_HIDDEN, transposed, scratch, D_STATES, n)
        copy(scratch, D_STATES, d_states, first, n)
