"""The CPU kernels, in Numba: hop, stream input and attention, forward and backward.

Each kernel walks the queries one after the other, and a query's entities in blocks whose rows stay
in the first cache between the stages: what a stage leaves in scratch, the next one takes from
there. Backward passes compute hidden layers again instead of reading them back from memory, which
costs the same time and a fraction of the space. No kernel starts threads: whoever calls may run
several at once on different queries, and the bits do not depend on how many.

Arrays are pointers to rows of D floats (see ``_vectors``); matrices are (in x out).
"""

# pyright: basic

import numpy as np

from knowformer.kernels._cpu_stages import (
    BLOCK,
    TINY,
    add_rows,
    clear,
    copy,
    mask,
    matmul,
    matmul_add,
    normal_gradient,
    normalized,
    numba_function,
    outer,
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
    shifted,
    store,
    total,
    where_positive,
    width,
)

# ---- hop -----------------------------------------------------------------------------------------


@numba_function
def _update_hidden(scratch, w1, b1, w2, b2, w3, b3, layers, n):
    """From rows at 0: hidden layers at BLOCK (and 2 BLOCK), the result at 3 BLOCK."""
    matmul(scratch, 0, w1, b1, scratch, BLOCK, n, True)
    if layers == 2:
        matmul(scratch, BLOCK, w2, b2, scratch, 3 * BLOCK, n)
    else:
        matmul(scratch, BLOCK, w2, b2, scratch, 2 * BLOCK, n, True)
        matmul(scratch, 2 * BLOCK, w3, b3, scratch, 3 * BLOCK, n)


def hop_forward(
    states, relations, offsets, sender, relation, weights, mats, pre, out, scratch,
    num_queries, num_entities, num_relations, layers, norm, keep,
):  # fmt: skip
    """``weights``: rows self_weight, b1, b2, b3, gamma, beta. ``mats``: w1, w2, w3 of D rows each."""
    d = width(states)
    b1, b2, b3 = shifted(weights, 1), shifted(weights, 2), shifted(weights, 3)
    w1, w2, w3 = mats, shifted(mats, d), shifted(mats, 2 * d)
    self_weight = load(weights, 0)
    gamma, beta = load(weights, 4), load(weights, 5)
    for b in range(num_queries):
        base, relation_base = b * num_entities, b * num_relations
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            for j in range(n):
                u = first + j
                acc = mul(self_weight, load(states, base + u))
                for e in range(pick(offsets, u), pick(offsets, u + 1)):
                    message = load(states, base + pick(sender, e))
                    acc = fma(message, load(relations, relation_base + pick(relation, e)), acc)
                store(scratch, j, acc)
                if keep:
                    store(pre, base + u, acc)
            _update_hidden(scratch, w1, b1, w2, b2, w3, b3, layers, n)
            for j in range(n):
                row = load(scratch, 3 * BLOCK + j)
                if norm:
                    normal, _ = normalized(row)
                    row = add(load(states, base + first + j), fma(normal, gamma, beta))
                store(out, base + first + j, row)


def hop_backward(
    states, relations, pre, gradient, sender_offsets, message_offsets, message_relation, receiver,
    weights, mats, mats_t, d_pre, d_states, d_relations, d_weights, d_mats, scratch,
    num_queries, num_entities, num_relations, layers, norm,
):  # fmt: skip
    """``mats_t``: the matrices transposed. ``d_pre``: one query's rows, scratch."""
    d = width(states)
    b1, b2, b3 = shifted(weights, 1), shifted(weights, 2), shifted(weights, 3)
    w1, w2, w3 = mats, shifted(mats, d), shifted(mats, 2 * d)
    w1t, w2t, w3t = mats_t, shifted(mats_t, d), shifted(mats_t, 2 * d)
    zero = shifted(weights, 6)
    self_weight, gamma = load(weights, 0), load(weights, 4)
    for b in range(num_queries):
        base, relation_base = b * num_entities, b * num_relations
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            copy(pre, base + first, scratch, 0, n)
            _update_hidden(scratch, w1, b1, w2, b2, w3, b3, layers, n)
            copy(gradient, base + first, scratch, 4 * BLOCK, n)
            if norm:
                _hop_norm_backward(scratch, gamma, d_weights, n)
            g = 4 * BLOCK
            if layers == 3:
                add_rows(scratch, g, shifted(d_weights, 3), n)
                outer(scratch, 2 * BLOCK, scratch, g, shifted(d_mats, 2 * d), n)
                matmul(scratch, g, w3t, zero, scratch, 3 * BLOCK, n)
                mask(scratch, 2 * BLOCK, scratch, 3 * BLOCK, n)
                g = 3 * BLOCK
            add_rows(scratch, g, shifted(d_weights, 2), n)
            outer(scratch, BLOCK, scratch, g, shifted(d_mats, d), n)
            matmul(scratch, g, w2t, zero, scratch, 2 * BLOCK, n)
            mask(scratch, BLOCK, scratch, 2 * BLOCK, n)
            add_rows(scratch, 2 * BLOCK, shifted(d_weights, 1), n)
            outer(scratch, 0, scratch, 2 * BLOCK, d_mats, n)
            matmul(scratch, 2 * BLOCK, w1t, zero, scratch, 3 * BLOCK, n)
            d_self = row_like(self_weight, np.float32(0.0))
            for j in range(n):
                row = load(scratch, 3 * BLOCK + j)
                store(d_pre, first + j, row)
                d_self = fma(row, load(states, base + first + j), d_self)
                row = mul(row, self_weight)
                if norm:
                    row = add(row, load(gradient, base + first + j))
                store(d_states, base + first + j, row)
            store(d_weights, 0, add(load(d_weights, 0), d_self))
        _scatter(
            states, relations, d_pre, sender_offsets, message_offsets, message_relation, receiver,
            d_states, d_relations, base, relation_base, num_entities,
        )  # fmt: skip


@numba_function
def _hop_norm_backward(scratch, gamma, d_weights, n):
    """Gradient at 4 BLOCK through LayerNorm of the rows at 3 BLOCK, in place."""
    d_gamma = d_beta = row_like(gamma, np.float32(0.0))
    for j in range(n):
        g = load(scratch, 4 * BLOCK + j)
        normal, scale = normalized(load(scratch, 3 * BLOCK + j))
        d_gamma = fma(g, normal, d_gamma)
        d_beta = add(d_beta, g)
        store(scratch, 4 * BLOCK + j, normal_gradient(mul(g, gamma), normal, scale))
    store(d_weights, 4, add(load(d_weights, 4), d_gamma))
    store(d_weights, 5, add(load(d_weights, 5), d_beta))


@numba_function
def _scatter(
    states, relations, d_pre, sender_offsets, message_offsets, message_relation, receiver,
    d_states, d_relations, base, relation_base, num_entities,
):  # fmt: skip
    """Gradients back along the edges: gathered per message, so each is written once."""
    for v in range(num_entities):
        acc, own = load(d_states, base + v), load(states, base + v)
        for m in range(pick(sender_offsets, v), pick(sender_offsets, v + 1)):
            e, last = pick(message_offsets, m), pick(message_offsets, m + 1)
            if e == last:
                continue
            g = load(d_pre, pick(receiver, e))
            for other in range(e + 1, last):
                g = add(g, load(d_pre, pick(receiver, other)))
            r = relation_base + pick(message_relation, m)
            acc = fma(g, load(relations, r), acc)
            store(d_relations, r, fma(g, own, load(d_relations, r)))
        store(d_states, base + v, acc)


# ---- stream input --------------------------------------------------------------------------------


@numba_function
def _input_hidden(states, extra, bonus, mats, scratch, base, first, head, shared, has_states, n):
    """Hidden layer at BLOCK: relu(states @ w1 + extra, and bonus at the head)."""
    for j in range(n):
        row = load(extra, 0 if shared else first + j)
        if first + j == head:
            row = add(row, load(bonus, 0))
        store(scratch, BLOCK + j, row)
    if has_states:
        copy(states, base + first, scratch, 0, n)
        matmul_add(scratch, 0, mats, scratch, BLOCK, n)
    for j in range(n):
        row = load(scratch, BLOCK + j)
        store(scratch, BLOCK + j, where_positive(row, row))


def input_forward(
    states, extra, bonus, heads, mats, bias, out, scratch,
    num_queries, num_entities, shared, has_states,
):  # fmt: skip
    """Out = relu(states @ w1 + extra (+ bonus at the head)) @ w2 + bias."""
    d = width(extra)
    w2 = shifted(mats, d)
    for b in range(num_queries):
        base, head = b * num_entities, pick(heads, b)
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            _input_hidden(
                states, extra, bonus, mats, scratch, base, first, head, shared, has_states, n
            )
            matmul(scratch, BLOCK, w2, bias, scratch, 0, n)
            copy(scratch, 0, out, base + first, n)


def input_backward(
    states, extra, bonus, heads, mats, mats_t, zero, gradient,
    d_states, d_extra, d_bonus, d_mats, d_bias, scratch,
    num_queries, num_entities, shared, has_states,
):  # fmt: skip
    """Gradients of ``input_forward``; ``d_extra`` sums over the queries."""
    d = width(extra)
    w1t, w2t = mats_t, shifted(mats_t, d)
    for b in range(num_queries):
        base, head = b * num_entities, pick(heads, b)
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            _input_hidden(
                states, extra, bonus, mats, scratch, base, first, head, shared, has_states, n
            )
            copy(gradient, base + first, scratch, 2 * BLOCK, n)
            add_rows(scratch, 2 * BLOCK, d_bias, n)
            outer(scratch, BLOCK, scratch, 2 * BLOCK, shifted(d_mats, d), n)
            matmul(scratch, 2 * BLOCK, w2t, zero, scratch, 3 * BLOCK, n)
            mask(scratch, BLOCK, scratch, 3 * BLOCK, n)
            if shared:
                add_rows(scratch, 3 * BLOCK, d_extra, n)
            else:
                for j in range(n):
                    row = add(load(d_extra, first + j), load(scratch, 3 * BLOCK + j))
                    store(d_extra, first + j, row)
            if first <= head < first + n:
                row = add(load(d_bonus, 0), load(scratch, 3 * BLOCK + head - first))
                store(d_bonus, 0, row)
            if has_states:
                outer(scratch, 0, scratch, 3 * BLOCK, d_mats, n)
                matmul(scratch, 3 * BLOCK, w1t, zero, scratch, 0, n)
                copy(scratch, 0, d_states, base + first, n)


# ---- attention, feed-forward and norms -----------------------------------------------------------


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
def _attention_sums(
    query_key, values, weights, mats, sums, scratch, scratch_heads, lengths, base, num_entities
):
    """One pass over a query's entities: sums gets k^T v in D rows, then sum k and sum v."""
    d = width(values)
    heads = d // width(scratch_heads)
    clear(sums, 0, d + 2)
    for first in range(0, num_entities, BLOCK):
        n = min(BLOCK, num_entities - first)
        copy(query_key, base + first, scratch, 0, n)
        matmul(scratch, 0, shifted(mats, d), shifted(weights, 1), scratch, BLOCK, n)
        _unit_heads(scratch_heads, BLOCK * heads, n * heads, lengths)
        copy(values, base + first, scratch, 0, n)
        outer(scratch, BLOCK, scratch, 0, sums, n)
        add_rows(scratch, BLOCK, shifted(sums, d), n)
        add_rows(scratch, 0, shifted(sums, d + 1), n)
    _keep_blocks(sums, width(scratch_heads))


@numba_function
def _keep_blocks(matrix, head_width):
    """Zero outside the blocks of the diagonal: heads do not see each other."""
    d = width(matrix)
    for q in range(d):
        for c in range(d):
            if q // head_width != c // head_width:
                put_at(matrix, q, c, np.float32(0.0))


@numba_function
def _attend_block(
    query_key, values, weights, mats, sums, scratch, scratch_heads, values_heads, sums_heads,
    lengths, masses, base, first, n, num_entities,
):  # fmt: skip
    """Q at BLOCK (its lengths kept) and what each entity gathers at 2 BLOCK (its masses kept)."""
    d = width(values)
    heads = d // width(scratch_heads)
    count = np.float32(num_entities)
    copy(query_key, base + first, scratch, 0, n)
    matmul(scratch, 0, mats, weights, scratch, BLOCK, n)
    _unit_heads(scratch_heads, BLOCK * heads, n * heads, lengths)
    matmul(scratch, BLOCK, sums, shifted(sums, d + 1), scratch, 2 * BLOCK, n)
    for j in range(n):
        for h in range(heads):
            q = load(scratch_heads, (BLOCK + j) * heads + h)
            mass = count + count + total(mul(q, load(sums_heads, d * heads + h)))
            own = load(values_heads, (base + first + j) * heads + h)
            row = load(scratch_heads, (2 * BLOCK + j) * heads + h)
            gathered = fma(own, row_like(own, count), row)
            store(scratch_heads, (2 * BLOCK + j) * heads + h, div(gathered, row_like(own, mass)))
            put(masses, j * heads + h, mass)


@numba_function
def _feed_forward_block(states, weights, mats, dropout, scratch, base, first, n, threshold, scale):
    """From what is gathered at 2 BLOCK: normal a at 2, a at 3, hidden at 4, a + ffn(a) at 5 BLOCK.

    The scale of the first norm goes into lane 0 of the rows at 6 BLOCK.
    """
    d = width(states)
    gamma, beta = load(weights, 2), load(weights, 3)
    for j in range(n):
        row = add(load(states, base + first + j), load(scratch, 2 * BLOCK + j))
        normal, norm_scale = normalized(row)
        store(scratch, 2 * BLOCK + j, normal)
        store(scratch, 3 * BLOCK + j, fma(normal, gamma, beta))
        put_at(scratch, 6 * BLOCK + j, 0, norm_scale)
    w1, w2 = shifted(mats, 2 * d), shifted(mats, 3 * d)
    matmul(scratch, 3 * BLOCK, w1, shifted(weights, 4), scratch, 4 * BLOCK, n, True)
    if threshold:
        for j in range(n):
            row = load(scratch, 4 * BLOCK + j)
            row = kept(row, dropout, base + first + j, threshold, scale)
            store(scratch, 4 * BLOCK + j, row)
    matmul(scratch, 4 * BLOCK, w2, shifted(weights, 5), scratch, 5 * BLOCK, n)
    for j in range(n):
        row = add(load(scratch, 5 * BLOCK + j), load(scratch, 3 * BLOCK + j))
        store(scratch, 5 * BLOCK + j, row)


def attend_forward(
    states, query_key, values, values_heads, weights, mats, dropout, sums, sums_heads,
    scratch, scratch_heads, lengths, masses, out,
    num_queries, num_entities, threshold, scale,
):  # fmt: skip
    """``weights``: bq, bk, gamma1, beta1, b1, b2, gamma2, beta2. ``mats``: wq, wk, w1, w2."""
    d = width(states)
    heads = d // width(scratch_heads)
    gamma, beta = load(weights, 6), load(weights, 7)
    for b in range(num_queries):
        base = b * num_entities
        own, own_heads = shifted(sums, b * (d + 2)), shifted(sums_heads, b * (d + 2) * heads)
        _attention_sums(
            query_key,
            values,
            weights,
            mats,
            own,
            scratch,
            scratch_heads,
            lengths,
            base,
            num_entities,
        )
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            _attend_block(
                query_key, values, weights, mats, own, scratch, scratch_heads, values_heads,
                own_heads, lengths, masses, base, first, n, num_entities,
            )  # fmt: skip
            _feed_forward_block(
                states, weights, mats, dropout, scratch, base, first, n, threshold, scale
            )
            for j in range(n):
                normal, _ = normalized(load(scratch, 5 * BLOCK + j))
                store(out, base + first + j, fma(normal, gamma, beta))


@numba_function
def _feed_forward_backward(
    gradient, weights, mats_t, zero, d_weights, d_mats, scratch, base, first, n, scale
):
    """Gradient of the layer's output back to what was gathered, at 3 BLOCK."""
    d = width(gradient)
    gamma1, gamma2 = load(weights, 2), load(weights, 6)
    d_gamma = d_beta = row_like(gamma2, np.float32(0.0))
    for j in range(n):
        g = load(gradient, base + first + j)
        normal, norm_scale = normalized(load(scratch, 5 * BLOCK + j))
        d_gamma = fma(g, normal, d_gamma)
        d_beta = add(d_beta, g)
        store(scratch, 5 * BLOCK + j, normal_gradient(mul(g, gamma2), normal, norm_scale))
    store(d_weights, 6, add(load(d_weights, 6), d_gamma))
    store(d_weights, 7, add(load(d_weights, 7), d_beta))
    add_rows(scratch, 5 * BLOCK, shifted(d_weights, 5), n)
    outer(scratch, 4 * BLOCK, scratch, 5 * BLOCK, shifted(d_mats, 3 * d), n)
    matmul(scratch, 5 * BLOCK, shifted(mats_t, 3 * d), zero, scratch, 7 * BLOCK, n)
    for j in range(n):
        # The hidden row is positive just where ReLU and dropout both let it through.
        row = where_positive(load(scratch, 4 * BLOCK + j), load(scratch, 7 * BLOCK + j))
        store(scratch, 7 * BLOCK + j, mul(row, row_like(row, scale)))
    add_rows(scratch, 7 * BLOCK, shifted(d_weights, 4), n)
    outer(scratch, 3 * BLOCK, scratch, 7 * BLOCK, shifted(d_mats, 2 * d), n)
    matmul_add(scratch, 7 * BLOCK, shifted(mats_t, 2 * d), scratch, 5 * BLOCK, n)
    d_gamma = d_beta = row_like(gamma1, np.float32(0.0))
    for j in range(n):
        g, normal = load(scratch, 5 * BLOCK + j), load(scratch, 2 * BLOCK + j)
        d_gamma = fma(g, normal, d_gamma)
        d_beta = add(d_beta, g)
        norm_scale = at(scratch, 6 * BLOCK + j, 0)
        store(scratch, 3 * BLOCK + j, normal_gradient(mul(g, gamma1), normal, norm_scale))
    store(d_weights, 2, add(load(d_weights, 2), d_gamma))
    store(d_weights, 3, add(load(d_weights, 3), d_beta))


@numba_function
def _gather_backward(
    query_key, sums_t, sums_heads, mats_t, zero, gathered_heads, d_sums,
    d_sums_heads, d_weights, d_mats, d_values, d_query_key, d_states, scratch, scratch_heads,
    lengths, masses, base, first, n, num_entities,
):  # fmt: skip
    """From d(gathered) at 3 BLOCK: gradients of states, values, q and the sums.

    ``gathered_heads`` holds what each entity gathered, for the gradient of its mass.
    """
    d = width(query_key)
    heads = d // width(scratch_heads)
    count = np.float32(num_entities)
    for j in range(n):
        store(d_states, base + first + j, load(scratch, 3 * BLOCK + j))
        for h in range(heads):
            at_row = (3 * BLOCK + j) * heads + h
            mass = pick_float(masses, j * heads + h)
            g = load(scratch_heads, at_row)
            d_mass = -total(mul(g, load(gathered_heads, j * heads + h))) / mass
            g = div(g, row_like(g, mass))
            store(scratch_heads, at_row, g)
            q = load(scratch_heads, (BLOCK + j) * heads + h)
            k_sum = load(sums_heads, d * heads + h)
            store(scratch_heads, (4 * BLOCK + j) * heads + h, mul(k_sum, row_like(g, d_mass)))
            row = fma(q, row_like(g, d_mass), load(d_sums_heads, d * heads + h))
            store(d_sums_heads, d * heads + h, row)
        g = load(scratch, 3 * BLOCK + j)
        store(d_values, base + first + j, mul(g, row_like(g, count)))
    add_rows(scratch, 3 * BLOCK, shifted(d_sums, d + 1), n)
    outer(scratch, BLOCK, scratch, 3 * BLOCK, d_sums, n)
    matmul_add(scratch, 3 * BLOCK, sums_t, scratch, 4 * BLOCK, n)
    _unit_heads_backward(
        scratch_heads, 4 * BLOCK * heads, scratch_heads, BLOCK * heads, n * heads, lengths
    )
    copy(query_key, base + first, scratch, 0, n)
    add_rows(scratch, 4 * BLOCK, d_weights, n)
    outer(scratch, 0, scratch, 4 * BLOCK, d_mats, n)
    matmul(scratch, 4 * BLOCK, mats_t, zero, scratch, 5 * BLOCK, n)
    copy(scratch, 5 * BLOCK, d_query_key, base + first, n)


@numba_function
def _keys_backward(
    query_key, values, weights, mats, mats_t, d_sums, d_sums_t, d_weights, d_mats, d_values,
    d_query_key, scratch, scratch_heads, lengths, base, first, n,
):  # fmt: skip
    """What the sums owe to each key and value."""
    d = width(values)
    heads = d // width(scratch_heads)
    copy(query_key, base + first, scratch, 0, n)
    matmul(scratch, 0, shifted(mats, d), shifted(weights, 1), scratch, BLOCK, n)
    _unit_heads(scratch_heads, BLOCK * heads, n * heads, lengths)
    copy(values, base + first, scratch, 2 * BLOCK, n)
    matmul(scratch, 2 * BLOCK, d_sums_t, shifted(d_sums, d), scratch, 3 * BLOCK, n)
    _unit_heads_backward(
        scratch_heads, 3 * BLOCK * heads, scratch_heads, BLOCK * heads, n * heads, lengths
    )
    matmul(scratch, BLOCK, d_sums, shifted(d_sums, d + 1), scratch, 4 * BLOCK, n)
    for j in range(n):
        row = add(load(d_values, base + first + j), load(scratch, 4 * BLOCK + j))
        store(d_values, base + first + j, row)
    add_rows(scratch, 3 * BLOCK, shifted(d_weights, 1), n)
    outer(scratch, 0, scratch, 3 * BLOCK, shifted(d_mats, d), n)
    copy(d_query_key, base + first, scratch, 5 * BLOCK, n)
    matmul_add(scratch, 3 * BLOCK, shifted(mats_t, d), scratch, 5 * BLOCK, n)
    copy(scratch, 5 * BLOCK, d_query_key, base + first, n)


@numba_function
def _transpose(matrix, target):
    d = width(matrix)
    for q in range(d):
        for c in range(d):
            put_at(target, c, q, at(matrix, q, c))


def attend_backward(
    states, query_key, values, values_heads, weights, mats, mats_t, zero, dropout, sums, sums_heads,
    gradient, d_states, d_query_key, d_values, d_weights, d_mats, d_sums, d_sums_heads, transposed,
    scratch, scratch_heads, gathered, gathered_heads, lengths, masses,
    num_queries, num_entities, threshold, scale,
):  # fmt: skip
    """Gradients of ``attend_forward``, whose ``sums`` it takes; the rest is computed again."""
    d = width(states)
    heads = d // width(scratch_heads)
    for b in range(num_queries):
        base = b * num_entities
        own, own_heads = shifted(sums, b * (d + 2)), shifted(sums_heads, b * (d + 2) * heads)
        _transpose(own, transposed)
        clear(d_sums, 0, d + 2)
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            _attend_block(
                query_key, values, weights, mats, own, scratch, scratch_heads, values_heads,
                own_heads, lengths, masses, base, first, n, num_entities,
            )  # fmt: skip
            copy(scratch, 2 * BLOCK, gathered, 0, n)
            _feed_forward_block(
                states, weights, mats, dropout, scratch, base, first, n, threshold, scale
            )
            _feed_forward_backward(
                gradient, weights, mats_t, zero, d_weights, d_mats, scratch, base, first, n, scale
            )
            _gather_backward(
                query_key, transposed, own_heads, mats_t, zero, gathered_heads,
                d_sums, d_sums_heads, d_weights, d_mats, d_values, d_query_key, d_states,
                scratch, scratch_heads, lengths, masses, base, first, n, num_entities,
            )  # fmt: skip
        _keep_blocks(d_sums, width(scratch_heads))
        _transpose(d_sums, transposed)
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            _keys_backward(
                query_key, values, weights, mats, mats_t, d_sums, transposed, d_weights, d_mats,
                d_values, d_query_key, scratch, scratch_heads, lengths, base, first, n,
            )  # fmt: skip


# ---- score -----------------------------------------------------------------------------------


def score_forward(states, weights, mats, out, scratch, num_rows, bias):
    """Out = relu(states @ w1 + b1) . w2 + bias; ``weights``: rows b1, w2."""
    last = load(weights, 1)
    for first in range(0, num_rows, BLOCK):
        n = min(BLOCK, num_rows - first)
        copy(states, first, scratch, 0, n)
        matmul(scratch, 0, mats, weights, scratch, BLOCK, n, True)
        for j in range(n):
            put(out, first + j, total(mul(load(scratch, BLOCK + j), last)) + bias)


def score_backward(
    states, weights, mats, mats_t, zero, gradient, d_states, d_weights, d_mats, scratch, num_rows
):
    """Gradients of ``score_forward``; that of the bias is the sum of ``gradient``."""
    last = load(weights, 1)
    for first in range(0, num_rows, BLOCK):
        n = min(BLOCK, num_rows - first)
        copy(states, first, scratch, 0, n)
        matmul(scratch, 0, mats, weights, scratch, BLOCK, n, True)
        for j in range(n):
            hidden, g = load(scratch, BLOCK + j), row_like(last, pick_float(gradient, first + j))
            store(scratch, 2 * BLOCK + j, where_positive(hidden, mul(g, last)))
            store(scratch, BLOCK + j, mul(hidden, g))
        add_rows(scratch, BLOCK, shifted(d_weights, 1), n)
        add_rows(scratch, 2 * BLOCK, d_weights, n)
        outer(scratch, 0, scratch, 2 * BLOCK, d_mats, n)
        matmul(scratch, 2 * BLOCK, mats_t, zero, scratch, 3 * BLOCK, n)
        copy(scratch, 3 * BLOCK, d_states, first, n)
