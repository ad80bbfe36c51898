"""Kernels of a stream's input, and of a whole stream near its queries' heads.

hidden_u = relu(x_u @ w1 + extra_u + indicator if u is the head)
z_u = hidden_u @ w2 + bias
"""

# pyright: basic

from knowformer.kernels._cpu_hop import PRE, UPDATE, prepare_update, update_block
from knowformer.kernels._cpu_stages import (
    BLOCK,
    add_rows,
    block_of,
    copy,
    matmul,
    matmul_from,
    matmul_masked,
    matmul_plain,
    numba_function,
    outer,
    transpose,
    unit_variance,
)
from knowformer.kernels._vectors import (
    add,
    at,
    fma,
    load,
    mul,
    pick,
    put_number,
    row_like,
    shifted,
    store,
    where_positive,
    width,
)

# Blocks of scratch.
STATES, HIDDEN, GRADIENT, D_HIDDEN = 0, BLOCK, 2 * BLOCK, 3 * BLOCK


@numba_function
def _hidden_block(
    source, s, extra, vectors, matrices, scratch, entity, first, head, shared, has_states, n
):
    """The hidden layer at HIDDEN; ``extra`` has one row if it is shared, else one per entity."""
    if not has_states:
        for j in range(n):
            row = load(extra, 0 if shared else entity + first + j)
            store(scratch, HIDDEN + j, where_positive(row, row))
    elif shared:
        matmul(source, s, matrices, extra, scratch, HIDDEN, n, True)
    else:
        start, b = block_of(extra, entity + first, scratch, HIDDEN, n)
        matmul_from(source, s, matrices, start, b, scratch, HIDDEN, n)
    if first <= head < first + n:
        # This row again, with the indicator.
        row = add(load(extra, 0 if shared else entity + head), load(vectors, 1))
        if has_states:
            for q in range(width(extra)):
                state = row_like(row, at(source, s + head - first, q))
                row = fma(state, load(matrices, q), row)
        store(scratch, HIDDEN + head - first, where_positive(row, row))


def input_forward(
    states, extra, segments, starts, heads, vectors, matrices, out, scratch,
    num_queries, shared, has_states, marks_head, first_row, last_row,
):  # fmt: skip
    """Only rows ``first_row`` to ``last_row`` of each segment are made."""
    w2 = shifted(matrices, width(extra))
    for b in range(num_queries):
        base, entity = pick(segments, b), pick(starts, b)
        head = pick(heads, b) if marks_head else -1
        last = min(pick(segments, b + 1) - base, last_row)
        for first in range(first_row, last, BLOCK):
            n = min(BLOCK, last - first)
            source, s = scratch, STATES
            if has_states:
                source, s = block_of(states, base + first, scratch, STATES, n)
            _hidden_block(
                source, s, extra, vectors, matrices, scratch, entity, first, head, shared,
                has_states, n,
            )  # fmt: skip
            if n == BLOCK:
                matmul(scratch, HIDDEN, w2, vectors, out, base + first, n)
            else:
                matmul(scratch, HIDDEN, w2, vectors, scratch, STATES, n)
                copy(scratch, STATES, out, base + first, n)


def input_backward(
    states, extra, segments, starts, heads, vectors, matrices, gradient,
    d_states, d_extra, d_vectors, d_matrices, transposed, scratch,
    num_queries, shared, has_states, marks_head,
):  # fmt: skip
    """Gradients of ``input_forward``; ``d_extra`` sums over the queries."""
    d = width(extra)
    transpose(matrices, 0, transposed, 0)
    transpose(matrices, d, transposed, d)
    w1t, w2t = transposed, shifted(transposed, d)
    for b in range(num_queries):
        base, entity = pick(segments, b), pick(starts, b)
        head = pick(heads, b) if marks_head else -1
        num_rows = pick(segments, b + 1) - base
        for first in range(0, num_rows, BLOCK):
            n = min(BLOCK, num_rows - first)
            source, s = scratch, STATES
            if has_states:
                source, s = block_of(states, base + first, scratch, STATES, n)
            _hidden_block(
                source, s, extra, vectors, matrices, scratch, entity, first, head, shared,
                has_states, n,
            )  # fmt: skip
            above, g = block_of(gradient, base + first, scratch, GRADIENT, n)
            add_rows(above, g, d_vectors, n)
            outer(scratch, HIDDEN, above, g, shifted(d_matrices, d), n)
            matmul_masked(above, g, w2t, scratch, HIDDEN, scratch, D_HIDDEN, n)
            if shared:
                add_rows(scratch, D_HIDDEN, d_extra, n)
            else:
                for j in range(n):
                    u = entity + first + j
                    store(d_extra, u, add(load(d_extra, u), load(scratch, D_HIDDEN + j)))
            if first <= head < first + n:
                row = add(load(d_vectors, 1), load(scratch, D_HIDDEN + head - first))
                store(d_vectors, 1, row)
            if has_states:
                outer(source, s, scratch, D_HIDDEN, d_matrices, n)
                if n == BLOCK:
                    matmul_plain(scratch, D_HIDDEN, w1t, d_states, base + first, n)
                else:
                    matmul_plain(scratch, D_HIDDEN, w1t, scratch, STATES, n)
                    copy(scratch, STATES, d_states, base + first, n)


# ---- a stream near its heads -------------------------------------------------------------------


@numba_function
def _reach(head, sender_offsets, message_offsets, receiver, order, position, counts, hops):
    """Lists entities by their distance from the head; counts[k] of them are within k hops."""
    put_number(order, 0, head)
    put_number(position, head, 0)
    put_number(counts, 0, 1)
    first = 0
    last = 1
    for k in range(hops):
        end = last
        for at_order in range(first, last):
            v = pick(order, at_order)
            edges = pick(message_offsets, pick(sender_offsets, v))
            for e in range(edges, pick(message_offsets, pick(sender_offsets, v + 1))):
                u = pick(receiver, e)
                if pick(position, u) < 0:
                    put_number(order, end, u)
                    put_number(position, u, end)
                    end += 1
        first = last
        last = end
        put_number(counts, k + 1, last)


def near_heads_forward(
    background, relation_vectors, offsets, sender, relation, sender_offsets, message_offsets,
    receiver, heads, extra, start_vectors, start_matrices, vectors, matrices, position, out,
    order, counts, near, far, prepared, scratch,
    num_queries, num_entities, num_relations, num_vectors, hops, num_maps, norm,
):  # fmt: skip
    """Input and hops of a stream whose queries see one graph and differ in their heads alone.

    ``background`` has the stream without a head, after 0, 1, ... hops. A head changes entities
    within k hops after k hops: these are computed, the others taken from there. ``position`` must
    come filled with -1 and is left so; ``near`` and ``far`` hold changed states by distance.
    """
    d = width(extra)
    w2 = shifted(start_matrices, d)
    for b in range(num_queries):
        head = pick(heads, b)
        _reach(head, sender_offsets, message_offsets, receiver, order, position, counts, hops)
        row = add(load(extra, 0), load(start_vectors, 1))
        store(scratch, 0, where_positive(row, row))
        matmul(scratch, 0, w2, start_vectors, scratch, BLOCK, 1)
        copy(scratch, BLOCK, near, 0, 1)
        for k in range(hops):
            hop_vectors = shifted(vectors, k * num_vectors)
            prepare_update(
                hop_vectors, shifted(matrices, k * num_maps * d), prepared, num_maps, norm
            )
            changed, reached = pick(counts, k), pick(counts, k + 1)
            before = shifted(background, k * num_entities)
            for first in range(0, reached, BLOCK):
                n = min(BLOCK, reached - first)
                _near_block(
                    before, shifted(relation_vectors, k * num_relations), offsets, sender, relation,
                    hop_vectors, order, position, near, far, prepared, scratch,
                    first, n, changed, num_maps, norm,
                )  # fmt: skip
            near, far = far, near
        base = b * num_entities
        copy(background, hops * num_entities, out, base, num_entities)
        for at_order in range(pick(counts, hops)):
            u = pick(order, at_order)
            store(out, base + u, load(near, at_order))
            put_number(position, u, -1)


@numba_function
def _near_block(
    before, relation_vectors, offsets, sender, relation, vectors, order, position, near, far,
    prepared, scratch, first, n, changed, num_maps, norm,
):  # fmt: skip
    """One hop for entities ``first`` to ``first + n`` in the order of distance."""
    self_weight = load(vectors, 0)
    gamma = beta = self_weight
    if norm:
        gamma, beta = load(vectors, num_maps + 1), load(vectors, num_maps + 2)
    for j in range(n):
        u = pick(order, first + j)
        state = load(near, first + j) if first + j < changed else load(before, u)
        acc = mul(self_weight, state)
        for e in range(pick(offsets, u), pick(offsets, u + 1)):
            v = pick(sender, e)
            p = pick(position, v)
            message = load(near, p) if 0 <= p < changed else load(before, v)
            acc = fma(message, load(relation_vectors, pick(relation, e)), acc)
        store(scratch, PRE + j, acc)
    update_block(scratch, PRE, scratch, prepared, num_maps, n)
    for j in range(n):
        row = load(scratch, UPDATE + j)
        if norm:
            normal, _ = unit_variance(row)
            u = pick(order, first + j)
            state = load(near, first + j) if first + j < changed else load(before, u)
            row = add(state, fma(normal, gamma, beta))
        store(far, first + j, row)
