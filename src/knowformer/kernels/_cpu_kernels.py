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
    block_of,
    centre,
    clear,
    copy,
    matmul,
    matmul_add,
    matmul_from,
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
    unit_variance,
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
    put_number,
    row_like,
    shifted,
    store,
    sub,
    total,
    where_positive,
    width,
)

# ---- hop -----------------------------------------------------------------------------------------


@numba_function
def _prepare_update(weights, maps, own, layers, norm):
    """Copies maps, then biases, to ``own``; before a norm the last ones' rows lose their mean.

    LayerNorm takes its input's mean off; a map whose rows have mean 0 gives rows that have none.
    """
    d = width(weights)
    copy(maps, 0, own, 0, layers * d)
    copy(weights, 1, own, layers * d, layers)
    if norm:
        centre(own, (layers - 1) * d, own, (layers - 1) * d, d)
        centre(own, layers * d + layers - 1, own, layers * d + layers - 1, 1)


@numba_function
def _update_hidden(source, s, scratch, own, layers, n):
    """From rows of ``source``: hidden layers at BLOCK (and 2 BLOCK), the result at 3 BLOCK."""
    d = width(scratch)
    biases = shifted(own, layers * d)
    matmul(source, s, own, biases, scratch, BLOCK, n, True)
    w2, b2 = shifted(own, d), shifted(biases, 1)
    if layers == 2:
        matmul(scratch, BLOCK, w2, b2, scratch, 3 * BLOCK, n)
    else:
        matmul(scratch, BLOCK, w2, b2, scratch, 2 * BLOCK, n, True)
        w3, b3 = shifted(own, 2 * d), shifted(biases, 2)
        matmul(scratch, 2 * BLOCK, w3, b3, scratch, 3 * BLOCK, n)


def hop_forward(
    states, relations, offsets, sender, relation, weights, maps, pre, out, own, scratch,
    num_queries, num_entities, num_relations, layers, norm, keep,
):  # fmt: skip
    """``weights``: rows self_weight, biases, gamma, beta. ``own``: scratch for the update."""
    _prepare_update(weights, maps, own, layers, norm)
    self_weight = load(weights, 0)
    gamma = beta = self_weight
    if norm:
        gamma, beta = load(weights, layers + 1), load(weights, layers + 2)
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
            _update_hidden(scratch, 0, scratch, own, layers, n)
            for j in range(n):
                row = load(scratch, 3 * BLOCK + j)
                if norm:
                    normal, _ = unit_variance(row)
                    row = add(load(states, base + first + j), fma(normal, gamma, beta))
                store(out, base + first + j, row)


def hop_backward(
    states, relations, pre, gradient, sender_offsets, message_offsets, message_relation, receiver,
    weights, maps, own, transposed, d_pre, d_states, d_relations, d_weights, d_maps, scratch,
    num_queries, num_entities, num_relations, layers, norm,
):  # fmt: skip
    """``own`` and ``transposed``: scratch for the maps. ``d_pre``: one query's rows, scratch."""
    d = width(states)
    _prepare_update(weights, maps, own, layers, norm)
    for number in range(layers):
        transpose(own, number * d, transposed, number * d)
    w1t, w2t, w3t = transposed, shifted(transposed, d), shifted(transposed, 2 * d)
    self_weight = load(weights, 0)
    for b in range(num_queries):
        base, relation_base = b * num_entities, b * num_relations
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            source, s = block_of(pre, base + first, scratch, 0, n)
            _update_hidden(source, s, scratch, own, layers, n)
            above, g = block_of(gradient, base + first, scratch, 4 * BLOCK, n)
            if norm:
                _hop_norm_backward(
                    above, g, load(weights, layers + 1), shifted(d_weights, layers + 1), scratch, n
                )
                above, g = scratch, 4 * BLOCK
            if layers == 3:
                add_rows(above, g, shifted(d_weights, 3), n)
                outer(scratch, 2 * BLOCK, above, g, shifted(d_maps, 2 * d), n)
                matmul_masked(above, g, w3t, scratch, 2 * BLOCK, scratch, 3 * BLOCK, n)
                above, g = scratch, 3 * BLOCK
            add_rows(above, g, shifted(d_weights, 2), n)
            outer(scratch, BLOCK, above, g, shifted(d_maps, d), n)
            matmul_masked(above, g, w2t, scratch, BLOCK, scratch, 2 * BLOCK, n)
            add_rows(scratch, 2 * BLOCK, shifted(d_weights, 1), n)
            outer(source, s, scratch, 2 * BLOCK, d_maps, n)
            matmul_plain(scratch, 2 * BLOCK, w1t, scratch, 3 * BLOCK, n)
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
    if norm:
        # What was summed is the gradient of the centred map.
        centre(d_maps, (layers - 1) * d, d_maps, (layers - 1) * d, d)
        centre(d_weights, layers, d_weights, layers, 1)


@numba_function
def _hop_norm_backward(above, g, gamma, d_norm, scratch, n):
    """Gradient of the rows at 3 BLOCK before their norm, but for its mean, at 4 BLOCK."""
    d_gamma = d_beta = row_like(gamma, np.float32(0.0))
    share = np.float32(1.0) / np.float32(width(scratch))
    for j in range(n):
        row = load(above, g + j)
        normal, scale = unit_variance(load(scratch, 3 * BLOCK + j))
        d_gamma = fma(row, normal, d_gamma)
        d_beta = add(d_beta, row)
        row = mul(row, gamma)
        along = total(mul(row, normal)) * share
        rest = sub(row, mul(normal, row_like(normal, along)))
        store(scratch, 4 * BLOCK + j, mul(rest, row_like(normal, scale)))
    store(d_norm, 0, add(load(d_norm, 0), d_gamma))
    store(d_norm, 1, add(load(d_norm, 1), d_beta))


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
def _input_hidden(source, s, extra, weights, maps, scratch, first, head, shared, has_states, n):
    """Hidden layer at BLOCK: relu(states @ w1 + extra, and the bonus at the head)."""
    if not has_states:
        for j in range(n):
            row = load(extra, 0 if shared else first + j)
            store(scratch, BLOCK + j, where_positive(row, row))
    elif shared:
        matmul(source, s, maps, extra, scratch, BLOCK, n, True)
    else:
        start, b = block_of(extra, first, scratch, BLOCK, n)
        matmul_from(source, s, maps, start, b, scratch, BLOCK, n)
    if first <= head < first + n:
        # This row again, with the bonus.
        row = add(load(extra, 0 if shared else head), load(weights, 1))
        if has_states:
            for q in range(width(extra)):
                state = row_like(row, at(source, s + head - first, q))
                row = fma(state, load(maps, q), row)
        store(scratch, BLOCK + head - first, where_positive(row, row))


def input_forward(
    states, extra, heads, weights, maps, out, scratch, num_queries, num_entities, shared, has_states
):
    """``weights``: rows bias, and bonus if ``heads`` names any entity. ``maps``: w1, w2."""
    w2 = shifted(maps, width(extra))
    for b in range(num_queries):
        base, head = b * num_entities, pick(heads, b)
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            source, s = scratch, 0
            if has_states:
                source, s = block_of(states, base + first, scratch, 0, n)
            _input_hidden(
                source, s, extra, weights, maps, scratch, first, head, shared, has_states, n
            )
            if n == BLOCK:
                matmul(scratch, BLOCK, w2, weights, out, base + first, n)
            else:
                matmul(scratch, BLOCK, w2, weights, scratch, 0, n)
                copy(scratch, 0, out, base + first, n)


def input_backward(
    states, extra, heads, weights, maps, transposed, gradient, d_states, d_extra, d_weights, d_maps,
    scratch, num_queries, num_entities, shared, has_states,
):  # fmt: skip
    """Gradients of ``input_forward``; ``d_extra`` sums over the queries."""
    d = width(extra)
    transpose(maps, 0, transposed, 0)
    transpose(maps, d, transposed, d)
    w1t, w2t = transposed, shifted(transposed, d)
    for b in range(num_queries):
        base, head = b * num_entities, pick(heads, b)
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            source, s = scratch, 0
            if has_states:
                source, s = block_of(states, base + first, scratch, 0, n)
            _input_hidden(
                source, s, extra, weights, maps, scratch, first, head, shared, has_states, n
            )
            above, g = block_of(gradient, base + first, scratch, 2 * BLOCK, n)
            add_rows(above, g, d_weights, n)
            outer(scratch, BLOCK, above, g, shifted(d_maps, d), n)
            matmul_masked(above, g, w2t, scratch, BLOCK, scratch, 3 * BLOCK, n)
            if shared:
                add_rows(scratch, 3 * BLOCK, d_extra, n)
            else:
                for j in range(n):
                    row = add(load(d_extra, first + j), load(scratch, 3 * BLOCK + j))
                    store(d_extra, first + j, row)
            if first <= head < first + n:
                row = add(load(d_weights, 1), load(scratch, 3 * BLOCK + head - first))
                store(d_weights, 1, row)
            if has_states:
                outer(source, s, scratch, 3 * BLOCK, d_maps, n)
                if n == BLOCK:
                    matmul_plain(scratch, 3 * BLOCK, w1t, d_states, base + first, n)
                else:
                    matmul_plain(scratch, 3 * BLOCK, w1t, scratch, 0, n)
                    copy(scratch, 0, d_states, base + first, n)


# ---- a stream from its background ----------------------------------------------------------------


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


def spread_forward(
    background, relations, offsets, sender, relation, sender_offsets, message_offsets, receiver,
    heads, extra, start_weights, start_maps, weights, maps, order, position, counts,
    near, far, out, own, scratch,
    num_queries, num_entities, num_relations, num_rows, hops, layers, norm,
):  # fmt: skip
    """Input and hops of a stream whose queries differ in their heads alone.

    ``background`` has the stream without a head, after 0, 1, ... hops. A head changes entities
    within k hops after k hops: these are computed, the others taken from there. ``position`` must
    come filled with -1 and is left so; ``near`` and ``far`` hold changed states by distance.
    """
    d = width(extra)
    w2 = shifted(start_maps, d)
    for b in range(num_queries):
        head = pick(heads, b)
        _reach(head, sender_offsets, message_offsets, receiver, order, position, counts, hops)
        row = add(load(extra, 0), load(start_weights, 1))
        store(scratch, 0, where_positive(row, row))
        matmul(scratch, 0, w2, start_weights, scratch, BLOCK, 1)
        copy(scratch, BLOCK, near, 0, 1)
        for k in range(hops):
            hop_weights = shifted(weights, k * num_rows)
            _prepare_update(hop_weights, shifted(maps, k * layers * d), own, layers, norm)
            known, reached = pick(counts, k), pick(counts, k + 1)
            before = shifted(background, k * num_entities)
            for first in range(0, reached, BLOCK):
                n = min(BLOCK, reached - first)
                _spread_block(
                    before, shifted(relations, k * num_relations), offsets, sender, relation,
                    hop_weights, order, position, near, far, own, scratch,
                    first, n, known, layers, norm,
                )  # fmt: skip
            near, far = far, near
        base = b * num_entities
        copy(background, hops * num_entities, out, base, num_entities)
        for at_order in range(pick(counts, hops)):
            u = pick(order, at_order)
            store(out, base + u, load(near, at_order))
            put_number(position, u, -1)


@numba_function
def _spread_block(
    before, relations, offsets, sender, relation, weights, order, position, near, far, own, scratch,
    first, n, known, layers, norm,
):  # fmt: skip
    """One hop for entities ``first`` to ``first + n`` in the order of distance."""
    self_weight = load(weights, 0)
    gamma = beta = self_weight
    if norm:
        gamma, beta = load(weights, layers + 1), load(weights, layers + 2)
    for j in range(n):
        u = pick(order, first + j)
        state = load(near, first + j) if first + j < known else load(before, u)
        acc = mul(self_weight, state)
        for e in range(pick(offsets, u), pick(offsets, u + 1)):
            v = pick(sender, e)
            p = pick(position, v)
            message = load(near, p) if 0 <= p < known else load(before, v)
            acc = fma(message, load(relations, pick(relation, e)), acc)
        store(scratch, j, acc)
    _update_hidden(scratch, 0, scratch, own, layers, n)
    for j in range(n):
        row = load(scratch, 3 * BLOCK + j)
        if norm:
            normal, _ = unit_variance(row)
            u = pick(order, first + j)
            state = load(near, first + j) if first + j < known else load(before, u)
            row = add(state, fma(normal, gamma, beta))
        store(far, first + j, row)


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
def _keys(query_key, weights, maps, scratch, scratch_heads, lengths, base, first, n):
    """K at BLOCK, its lengths kept; returns where the block's query_key states are."""
    d = width(query_key)
    heads = d // width(scratch_heads)
    source, s = block_of(query_key, base + first, scratch, 0, n)
    matmul(source, s, shifted(maps, d), shifted(weights, 1), scratch, BLOCK, n)
    _unit_heads(scratch_heads, BLOCK * heads, n * heads, lengths)
    return source, s


@numba_function
def _attention_sums(
    query_key, values, values_heads, weights, maps, sums, sums_heads, scratch, scratch_heads,
    lengths, base, num_entities,
):  # fmt: skip
    """One pass over a query's entities: sums gets k^T v of each head, then sum k and sum v."""
    c = width(scratch_heads)
    clear(sums, 0, c + 2)
    for first in range(0, num_entities, BLOCK):
        n = min(BLOCK, num_entities - first)
        _keys(query_key, weights, maps, scratch, scratch_heads, lengths, base, first, n)
        outer_heads(scratch, BLOCK, values_heads, base + first, sums_heads, n)
        add_rows(scratch, BLOCK, shifted(sums, c), n)
        add_rows(values, base + first, shifted(sums, c + 1), n)


@numba_function
def _attend_block(
    query_key, weights, maps, sums_heads, scratch, scratch_heads, values_heads, lengths, masses,
    base, first, n, num_entities,
):  # fmt: skip
    """Q at BLOCK (its lengths kept) and what each entity gathers at 2 BLOCK (its masses kept)."""
    d, c = width(query_key), width(scratch_heads)
    heads = d // c
    count = np.float32(num_entities)
    source, s = block_of(query_key, base + first, scratch, 0, n)
    matmul(source, s, maps, weights, scratch, BLOCK, n)
    _unit_heads(scratch_heads, BLOCK * heads, n * heads, lengths)
    v_sum = shifted(sums_heads, d + heads)
    matmul_heads(scratch, BLOCK, sums_heads, v_sum, scratch, 2 * BLOCK, n)
    for j in range(n):
        for h in range(heads):
            q = load(scratch_heads, (BLOCK + j) * heads + h)
            mass = count + count + total(mul(q, load(sums_heads, d + h)))
            own = load(values_heads, (base + first + j) * heads + h)
            row = load(scratch_heads, (2 * BLOCK + j) * heads + h)
            gathered = fma(own, row_like(own, count), row)
            share = np.float32(1.0) / mass
            store(scratch_heads, (2 * BLOCK + j) * heads + h, mul(gathered, row_like(own, share)))
            put(masses, j * heads + h, mass)


@numba_function
def _feed_forward_block(states, weights, maps, dropout, scratch, base, first, n, threshold, scale):
    """From what is gathered at 2 BLOCK: normal a at 2, a at 3, hidden at 4, ffn(a) at 5 BLOCK.

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
    w1, w2 = shifted(maps, 2 * d), shifted(maps, 3 * d)
    matmul(scratch, 3 * BLOCK, w1, shifted(weights, 4), scratch, 4 * BLOCK, n, True)
    if threshold:
        for j in range(n):
            row = load(scratch, 4 * BLOCK + j)
            row = kept(row, dropout, base + first + j, threshold, scale)
            store(scratch, 4 * BLOCK + j, row)
    matmul(scratch, 4 * BLOCK, w2, shifted(weights, 5), scratch, 5 * BLOCK, n)


def attend_forward(
    states, query_key, values, values_heads, weights, maps, dropout, sums, sums_heads,
    scratch, scratch_heads, lengths, masses, out,
    num_queries, num_entities, threshold, scale,
):  # fmt: skip
    """``weights``: bq, bk, gamma1, beta1, b1, b2, gamma2, beta2. ``maps``: wq, wk, w1, w2."""
    c = width(scratch_heads)
    heads = width(states) // c
    gamma, beta = load(weights, 6), load(weights, 7)
    for b in range(num_queries):
        base = b * num_entities
        own, own_heads = shifted(sums, b * (c + 2)), shifted(sums_heads, b * (c + 2) * heads)
        _attention_sums(
            query_key, values, values_heads, weights, maps, own, own_heads, scratch, scratch_heads,
            lengths, base, num_entities,
        )  # fmt: skip
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            _attend_block(
                query_key, weights, maps, own_heads, scratch, scratch_heads, values_heads,
                lengths, masses, base, first, n, num_entities,
            )  # fmt: skip
            _feed_forward_block(
                states, weights, maps, dropout, scratch, base, first, n, threshold, scale
            )
            for j in range(n):
                row = add(load(scratch, 3 * BLOCK + j), load(scratch, 5 * BLOCK + j))
                normal, _ = normalized(row)
                store(out, base + first + j, fma(normal, gamma, beta))


@numba_function
def _feed_forward_backward(
    gradient, weights, maps_t, d_weights, d_maps, scratch, base, first, n, scale
):
    """Gradient of the layer's output back to what was gathered, at 3 BLOCK."""
    d = width(gradient)
    gamma1, gamma2 = load(weights, 2), load(weights, 6)
    d_gamma = d_beta = row_like(gamma2, np.float32(0.0))
    for j in range(n):
        g = load(gradient, base + first + j)
        row = add(load(scratch, 3 * BLOCK + j), load(scratch, 5 * BLOCK + j))
        normal, norm_scale = normalized(row)
        d_gamma = fma(g, normal, d_gamma)
        d_beta = add(d_beta, g)
        store(scratch, 5 * BLOCK + j, normal_gradient(mul(g, gamma2), normal, norm_scale))
    store(d_weights, 6, add(load(d_weights, 6), d_gamma))
    store(d_weights, 7, add(load(d_weights, 7), d_beta))
    add_rows(scratch, 5 * BLOCK, shifted(d_weights, 5), n)
    outer(scratch, 4 * BLOCK, scratch, 5 * BLOCK, shifted(d_maps, 3 * d), n)
    # The hidden row is positive just where ReLU and dropout both let it through.
    w2t = shifted(maps_t, 3 * d)
    matmul_masked(scratch, 5 * BLOCK, w2t, scratch, 4 * BLOCK, scratch, 7 * BLOCK, n)
    if scale != np.float32(1.0):
        for j in range(n):
            row = load(scratch, 7 * BLOCK + j)
            store(scratch, 7 * BLOCK + j, mul(row, row_like(row, scale)))
    add_rows(scratch, 7 * BLOCK, shifted(d_weights, 4), n)
    outer(scratch, 3 * BLOCK, scratch, 7 * BLOCK, shifted(d_maps, 2 * d), n)
    matmul_add(scratch, 7 * BLOCK, shifted(maps_t, 2 * d), scratch, 5 * BLOCK, n)
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
    query_key, sums_heads, sums_t, maps_t, gathered_heads, d_sums, d_sums_heads, d_weights, d_maps,
    d_values, d_query_key, d_states, scratch, scratch_heads, lengths, masses,
    base, first, n, num_entities,
):  # fmt: skip
    """From d(gathered) at 3 BLOCK: gradients of states, values, q and the sums.

    ``gathered_heads`` holds what each entity gathered, for the gradient of its mass, which then
    takes the mass's place.
    """
    d, c = width(query_key), width(scratch_heads)
    heads = d // c
    count = np.float32(num_entities)
    for j in range(n):
        store(d_states, base + first + j, load(scratch, 3 * BLOCK + j))
        for h in range(heads):
            at_row = (3 * BLOCK + j) * heads + h
            share = np.float32(1.0) / pick_float(masses, j * heads + h)
            g = load(scratch_heads, at_row)
            d_mass = -total(mul(g, load(gathered_heads, j * heads + h))) * share
            store(scratch_heads, at_row, mul(g, row_like(g, share)))
            put(masses, j * heads + h, d_mass)
            q = load(scratch_heads, (BLOCK + j) * heads + h)
            store(d_sums_heads, d + h, fma(q, row_like(g, d_mass), load(d_sums_heads, d + h)))
        g = load(scratch, 3 * BLOCK + j)
        store(d_values, base + first + j, mul(g, row_like(g, count)))
    add_rows(scratch, 3 * BLOCK, shifted(d_sums, c + 1), n)
    outer_heads(scratch, BLOCK, scratch_heads, 3 * BLOCK, d_sums_heads, n)
    zero = shifted(scratch_heads, 8 * BLOCK * heads)
    matmul_heads(scratch, 3 * BLOCK, sums_t, zero, scratch, 4 * BLOCK, n)
    for j in range(n):
        for h in range(heads):
            at_row = (4 * BLOCK + j) * heads + h
            k_sum = load(sums_heads, d + h)
            d_mass = row_like(k_sum, pick_float(masses, j * heads + h))
            store(scratch_heads, at_row, fma(k_sum, d_mass, load(scratch_heads, at_row)))
    _unit_heads_backward(
        scratch_heads, 4 * BLOCK * heads, scratch_heads, BLOCK * heads, n * heads, lengths
    )
    source, s = block_of(query_key, base + first, scratch, 0, n)
    add_rows(scratch, 4 * BLOCK, d_weights, n)
    outer(source, s, scratch, 4 * BLOCK, d_maps, n)
    matmul_plain(scratch, 4 * BLOCK, maps_t, scratch, 5 * BLOCK, n)
    copy(scratch, 5 * BLOCK, d_query_key, base + first, n)


@numba_function
def _keys_backward(
    query_key, values, weights, maps, maps_t, d_sums_heads, d_sums_t, d_weights, d_maps, d_values,
    d_query_key, scratch, scratch_heads, lengths, base, first, n,
):  # fmt: skip
    """What the sums owe to each key and value."""
    d = width(values)
    heads = d // width(scratch_heads)
    source, s = _keys(query_key, weights, maps, scratch, scratch_heads, lengths, base, first, n)
    own, v = block_of(values, base + first, scratch, 2 * BLOCK, n)
    matmul_heads(own, v, d_sums_t, shifted(d_sums_heads, d), scratch, 3 * BLOCK, n)
    _unit_heads_backward(
        scratch_heads, 3 * BLOCK * heads, scratch_heads, BLOCK * heads, n * heads, lengths
    )
    v_sum = shifted(d_sums_heads, d + heads)
    matmul_heads(scratch, BLOCK, d_sums_heads, v_sum, scratch, 4 * BLOCK, n)
    for j in range(n):
        row = add(load(d_values, base + first + j), load(scratch, 4 * BLOCK + j))
        store(d_values, base + first + j, row)
    add_rows(scratch, 3 * BLOCK, shifted(d_weights, 1), n)
    outer(source, s, scratch, 3 * BLOCK, shifted(d_maps, d), n)
    if n == BLOCK:
        matmul_add(scratch, 3 * BLOCK, shifted(maps_t, d), d_query_key, base + first, n)
    else:
        copy(d_query_key, base + first, scratch, 5 * BLOCK, n)
        matmul_add(scratch, 3 * BLOCK, shifted(maps_t, d), scratch, 5 * BLOCK, n)
        copy(scratch, 5 * BLOCK, d_query_key, base + first, n)


def attend_backward(
    states, query_key, values, values_heads, weights, maps, maps_t, dropout, sums_heads,
    gradient, d_states, d_query_key, d_values, d_weights, d_maps, d_sums, d_sums_heads, sums_t,
    scratch, scratch_heads, gathered, gathered_heads, lengths, masses,
    num_queries, num_entities, threshold, scale,
):  # fmt: skip
    """Gradients of ``attend_forward``, whose ``sums`` it takes; the rest is computed again."""
    d, c = width(states), width(scratch_heads)
    heads = d // c
    for number in range(4):
        transpose(maps, number * d, maps_t, number * d)
    clear(scratch, 8 * BLOCK, 1)
    for b in range(num_queries):
        base = b * num_entities
        own_heads = shifted(sums_heads, b * (c + 2) * heads)
        transpose_heads(own_heads, sums_t, d)
        clear(d_sums, 0, c + 2)
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            _attend_block(
                query_key, weights, maps, own_heads, scratch, scratch_heads, values_heads,
                lengths, masses, base, first, n, num_entities,
            )  # fmt: skip
            copy(scratch, 2 * BLOCK, gathered, 0, n)
            _feed_forward_block(
                states, weights, maps, dropout, scratch, base, first, n, threshold, scale
            )
            _feed_forward_backward(
                gradient, weights, maps_t, d_weights, d_maps, scratch, base, first, n, scale
            )
            _gather_backward(
                query_key, own_heads, sums_t, maps_t, gathered_heads, d_sums, d_sums_heads,
                d_weights, d_maps, d_values, d_query_key, d_states, scratch, scratch_heads,
                lengths, masses, base, first, n, num_entities,
            )  # fmt: skip
        transpose_heads(d_sums_heads, sums_t, d)
        for first in range(0, num_entities, BLOCK):
            n = min(BLOCK, num_entities - first)
            _keys_backward(
                query_key, values, weights, maps, maps_t, d_sums_heads, sums_t, d_weights, d_maps,
                d_values, d_query_key, scratch, scratch_heads, lengths, base, first, n,
            )  # fmt: skip


# ---- score -----------------------------------------------------------------------------------


def score_forward(states, weights, maps, out, scratch, num_rows, bias):
    """Out = relu(states @ w1 + b1) . w2 + bias; ``weights``: rows b1, w2."""
    last = load(weights, 1)
    for first in range(0, num_rows, BLOCK):
        n = min(BLOCK, num_rows - first)
        source, s = block_of(states, first, scratch, 0, n)
        matmul(source, s, maps, weights, scratch, BLOCK, n, True)
        for j in range(n):
            put(out, first + j, total(mul(load(scratch, BLOCK + j), last)) + bias)


def score_backward(
    states, weights, maps, transposed, gradient, d_states, d_weights, d_maps, scratch, num_rows
):
    """Gradients of ``score_forward``; that of the bias is the sum of ``gradient``."""
    last = load(weights, 1)
    transpose(maps, 0, transposed, 0)
    for first in range(0, num_rows, BLOCK):
        n = min(BLOCK, num_rows - first)
        source, s = block_of(states, first, scratch, 0, n)
        matmul(source, s, maps, weights, scratch, BLOCK, n, True)
        for j in range(n):
            hidden, g = load(scratch, BLOCK + j), row_like(last, pick_float(gradient, first + j))
            store(scratch, 2 * BLOCK + j, where_positive(hidden, mul(g, last)))
            store(scratch, BLOCK + j, mul(hidden, g))
        add_rows(scratch, BLOCK, shifted(d_weights, 1), n)
        add_rows(scratch, 2 * BLOCK, d_weights, n)
        outer(source, s, scratch, 2 * BLOCK, d_maps, n)
        matmul_plain(scratch, 2 * BLOCK, transposed, scratch, 3 * BLOCK, n)
        copy(scratch, 3 * BLOCK, d_states, first, n)
