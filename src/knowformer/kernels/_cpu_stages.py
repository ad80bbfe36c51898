"""Stages of the CPU kernels, each on a block of rows that stays in the first cache.

Rows are named by an array and the number of the first: ``source, s`` are the rows from s on.
"""

# pyright: basic

import numpy as np
from numba import njit

from knowformer.kernels._vectors import (
    add,
    at,
    load,
    mul,
    outer_rows,
    outer_tile,
    put_at,
    row_count,
    row_like,
    store,
    strip,
    sub,
    tile,
    tile_add,
    tile_at,
    tile_columns,
    tile_fma,
    tile_of_rows,
    tile_outer,
    tile_relu,
    tile_rows,
    tile_store,
    tile_where_positive,
    total,
    width,
)

BLOCK = 48  # rows per block: a multiple of every tile's rows
HEAD_TILE_ROWS, HEAD_OUTER_ROWS = 6, 4  # heads are narrow: few registers each
EPSILON = np.float32(1e-5)  # torch's LayerNorm
TINY = np.float32(1e-12)  # torch's normalize

# Kernels alone call these: what would let Python and C call them is left out, and not compiled.
numba_function = njit(
    error_model="numpy", boundscheck=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
)


@numba_function
def matmul(source, s, weight, bias, target, t, n, relu=False):
    """target[t + j] = source[s + j] @ weight + bias for j < n, rounded up to whole tiles."""
    d = width(source)
    for c in range(0, d, tile_columns(source)):
        start = strip(bias, 0, c)
        for j in range(0, n, tile_rows(source)):
            acc = tile(source, start)
            for q in range(d):
                acc = tile_fma(acc, source, s + j, q, strip(weight, q, c))
            tile_store(target, t + j, c, tile_relu(acc) if relu else acc)


@numba_function
def matmul_add(source, s, weight, target, t, n):
    """target[t + j] += source[s + j] @ weight for j < n, rounded up to whole tiles."""
    d = width(source)
    for c in range(0, d, tile_columns(source)):
        for j in range(0, n, tile_rows(source)):
            acc = tile_at(target, t + j, c)
            for q in range(d):
                acc = tile_fma(acc, source, s + j, q, strip(weight, q, c))
            tile_store(target, t + j, c, acc)


@numba_function
def outer(left, a, right, b, sums, n):
    """Sums += left[a : a + n]^T @ right[b : b + n], the gradient of a matrix.

    A block is summed by itself before it joins the rest: errors grow with the number of blocks,
    not with that of rows.
    """
    d = width(left)
    for c in range(0, d, tile_columns(left)):
        start = strip(left, a, c)
        zero = row_like(start, np.float32(0.0))
        for q in range(0, d, outer_rows(left)):
            acc = outer_tile(left, zero)
            for j in range(n):
                acc = tile_outer(acc, left, a + j, q, strip(right, b + j, c))
            tile_add(sums, q, c, acc)


@numba_function
def matmul_heads(source, s, maps, starts, target, t, n):
    """``matmul`` head by head: ``maps`` has the C x C block of each, ``starts`` its bias."""
    c = width(maps)
    for h in range(width(source) // c):
        start = load(starts, h)
        for j in range(0, n, HEAD_TILE_ROWS):
            acc = tile_of_rows(start, HEAD_TILE_ROWS)
            for q in range(h * c, h * c + c):
                acc = tile_fma(acc, source, s + j, q, load(maps, q))
            tile_store(target, t + j, h * c, acc)


@numba_function
def outer_heads(left, a, right, b, sums, n):
    """``outer`` head by head: ``sums`` has the C x C block of each, ``right`` is rows of heads."""
    c = width(sums)
    heads = width(left) // c
    for q in range(0, width(left), HEAD_OUTER_ROWS):
        h = q // c
        zero = row_like(load(sums, q), np.float32(0.0))
        even = odd = tile_of_rows(zero, HEAD_OUTER_ROWS)
        for j in range(0, n - 1, 2):
            even = tile_outer(even, left, a + j, q, load(right, (b + j) * heads + h))
            odd = tile_outer(odd, left, a + j + 1, q, load(right, (b + j + 1) * heads + h))
        if n % 2:
            even = tile_outer(even, left, a + n - 1, q, load(right, (b + n - 1) * heads + h))
        tile_add(sums, q, 0, even)
        tile_add(sums, q, 0, odd)


@numba_function
def transpose_heads(source, target, d):
    """The C x C block of each head, transposed."""
    c = width(source)
    for q in range(d):
        for column in range(c):
            put_at(target, q // c * c + column, q % c, at(source, q, column))


@numba_function
def add_rows(source, s, sums, n):
    """Sums += source[s + j] over j < n, the gradient of a bias."""
    zero = row_like(load(source, s), np.float32(0.0))
    even = odd = zero
    for j in range(0, n - 1, 2):
        even = add(even, load(source, s + j))
        odd = add(odd, load(source, s + j + 1))
    if n % 2:
        even = add(even, load(source, s + n - 1))
    store(sums, 0, add(load(sums, 0), add(even, odd)))


@numba_function
def copy(source, s, target, t, n):
    for j in range(n):
        store(target, t + j, load(source, s + j))


@numba_function
def clear(target, t, n):
    zero = row_like(load(target, t), np.float32(0.0))
    for j in range(n):
        store(target, t + j, zero)


@numba_function
def matmul_from(source, s, weight, start, b, target, t, n):
    """target[t + j] = relu(source[s + j] @ weight + start[b + j]) for j < n, whole tiles."""
    d = width(source)
    for c in range(0, d, tile_columns(source)):
        for j in range(0, n, tile_rows(source)):
            acc = tile_at(start, b + j, c)
            for q in range(d):
                acc = tile_fma(acc, source, s + j, q, strip(weight, q, c))
            tile_store(target, t + j, c, tile_relu(acc))


@numba_function
def matmul_masked(source, s, weight, condition, m, target, t, n):
    """target[t + j] = source[s + j] @ weight where condition[m + j] is positive, else 0.

    The gradient of a linear map after ReLU.
    """
    d = width(source)
    for c in range(0, d, tile_columns(source)):
        zero = row_like(strip(weight, 0, c), np.float32(0.0))
        for j in range(0, n, tile_rows(source)):
            acc = tile(source, zero)
            for q in range(d):
                acc = tile_fma(acc, source, s + j, q, strip(weight, q, c))
            tile_store(target, t + j, c, tile_where_positive(acc, condition, m + j, c))


@numba_function
def matmul_plain(source, s, weight, target, t, n):
    """target[t + j] = source[s + j] @ weight for j < n, rounded up to whole tiles."""
    d = width(source)
    for c in range(0, d, tile_columns(source)):
        zero = row_like(strip(weight, 0, c), np.float32(0.0))
        for j in range(0, n, tile_rows(source)):
            acc = tile(source, zero)
            for q in range(d):
                acc = tile_fma(acc, source, s + j, q, strip(weight, q, c))
            tile_store(target, t + j, c, acc)


@numba_function
def block_of(source, s, scratch, t, n):
    """The block's rows: in place if it is a whole one, else a copy that tiles may read past."""
    if n == BLOCK:
        return source, s
    copy(source, s, scratch, t, n)
    return scratch, t


@numba_function
def transpose(source, s, target, t):
    """The D x D matrix whose rows start at s, transposed."""
    d = width(source)
    for q in range(d):
        for c in range(d):
            put_at(target, t + c, q, at(source, s + q, c))


@numba_function
def centre(source, s, target, t, n):
    """Takes each row's mean off it."""
    for j in range(n):
        row = load(source, s + j)
        share = np.float32(1.0) / np.float32(row_count(row))
        store(target, t + j, sub(row, row_like(row, total(row) * share)))


@numba_function
def unit_variance(row):
    """The row, whose mean is 0, with variance 1, and the scale that made it so."""
    share = np.float32(1.0) / np.float32(row_count(row))
    scale = np.float32(1.0) / np.sqrt(total(mul(row, row)) * share + EPSILON)
    return mul(row, row_like(row, scale)), scale


@numba_function
def normalized(row):
    """The row with mean 0 and variance 1, and the scale that made it so."""
    share = np.float32(1.0) / np.float32(row_count(row))
    centred = sub(row, row_like(row, total(row) * share))
    variance = total(mul(centred, centred)) * share
    scale = np.float32(1.0) / np.sqrt(variance + EPSILON)
    return mul(centred, row_like(row, scale)), scale


@numba_function
def normal_gradient(gradient, normal, scale):
    """Gradient of LayerNorm's input, given that of its output before weight and bias."""
    share = np.float32(1.0) / np.float32(row_count(normal))
    mean = total(gradient) * share
    along = total(mul(gradient, normal)) * share
    rest = sub(sub(gradient, row_like(normal, mean)), mul(normal, row_like(normal, along)))
    return mul(rest, row_like(normal, scale))
