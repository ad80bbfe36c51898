"""Compiled: the entities that may be in a view, with their scores."""

# pyright: basic

import numpy as np

from knowformer.views._compiled_graph import (
    DEGREE,
    HAS_PRIOR,
    RESIDUAL,
    SETTLED,
    has_edge,
    is_hidden,
    links,
    lower_bound,
    mark_targets,
    numba_function,
)


def reach(graph, scratch, rules, query, every_tail):
    """Scores entities: those that PageRank reaches, and tails of the query's relation.

    Args:
        graph: the graph.
        scratch: of this thread.
        rules: settings.
        query: what is asked, and what is hidden.
        every_tail: whether all tails are scored, or only those that a view may have room for.

    Returns:
        Entities in any order, their scores, whether these contain the prior, and if not all do,
        what the prior may add to the others at most.
    """
    mark_targets(scratch, query, True)
    _hide_degrees(graph, scratch, query)
    reached = _push(graph, scratch, rules, query)
    count, missing = _add_tails(graph, scratch, rules, query, reached, every_tail)
    scores, has_prior = _take_scores(scratch.state, scratch.candidates, count, rules)
    _restore_degrees(graph, scratch, query)
    mark_targets(scratch, query, False)
    return scratch.candidates[:count].copy(), scores, has_prior, missing


def priors(graph, scratch, rules, query, entities):
    """Returns the weighted prior of some entities."""
    mark_targets(scratch, query, True)
    found = _count_facts(graph.sender_offsets, graph.message_relation, graph.message_offsets, query.inverse, entities)  # fmt: skip
    each = _prior_of_a_fact(graph, scratch, rules, query)
    for number in range(len(entities)):
        entity = np.int64(entities[number])
        if entity == query.head or scratch.is_target[entity]:
            found[number] -= _hidden_answers(graph, scratch, query, entity)
        found[number] *= each
    mark_targets(scratch, query, False)
    return found


@numba_function
def _count_facts(sender_offsets, relation, message_offsets, inverse, tails):
    """How many facts of a relation have each of these tails: the edges of one of its messages."""
    counts = np.zeros(len(tails), dtype=np.int64)
    for number in range(len(tails)):
        tail = np.uint64(tails[number])
        message, stop = (
            np.int64(sender_offsets[tail]),
            np.int64(sender_offsets[tail + np.uint64(1)]),
        )
        message = lower_bound(relation, message, stop, inverse)
        if message < stop and relation[message] == inverse:
            counts[number] = message_offsets[message + 1] - message_offsets[message]
    return counts


@numba_function
def _hide_degrees(graph, scratch, query):
    """Takes hidden edges off the degrees."""
    if len(query.edges):
        for edge in query.edges:
            scratch.state[edge[2], DEGREE] -= 1
        return
    for target in query.targets:
        if query.hides_links:
            start, stop = links(graph, query.head, target)
            hidden = stop - start
        else:
            hidden = np.int64(has_edge(graph, query.head, query.relation, target))
        scratch.state[query.head, DEGREE] -= hidden
        # A hidden loop is two edges of the head; between links, both are among those counted.
        if target != query.head or not query.hides_links:
            scratch.state[target, DEGREE] -= hidden


@numba_function
def _restore_degrees(graph, scratch, query):
    head, offsets = query.head, graph.offsets
    scratch.state[head, DEGREE] = offsets[head + 1] - offsets[head]
    for target in query.targets:
        scratch.state[target, DEGREE] = offsets[target + 1] - offsets[target]


@numba_function
def _push(graph, scratch, rules, query):
    """Personalised PageRank by forward push, in rounds: what arrives moves on in the next."""
    state, candidates, is_target = scratch.state, scratch.candidates, scratch.is_target
    frontier, following, shares = scratch.frontier, scratch.following, scratch.shares
    offsets, all_receivers, tolerance = graph.offsets, graph.receiver, rules.tolerance
    candidates[0], frontier[0] = query.head, query.head
    state[query.head, RESIDUAL] = rules.mass
    reached, count = 1, 1
    while count:
        _settle(state, frontier, shares, count, rules)
        senders, count = count, 0
        for number in range(senders):
            entity, share = frontier[number], shares[number]
            if share == 0:
                continue
            receivers, start, stop = all_receivers, offsets[entity], offsets[entity + 1]
            if entity == query.head or is_target[entity]:
                receivers = _visible(graph, is_target, query, entity)
                start, stop = 0, len(receivers)
            for edge in range(start, stop):
                receiver = np.uint64(receivers[edge])
                before = state[receiver, RESIDUAL]
                state[receiver, RESIDUAL] = before + share
                if before == 0 and state[receiver, SETTLED] == 0:
                    candidates[reached] = receiver
                    reached += 1
                threshold = tolerance * state[receiver, DEGREE]
                if before < threshold <= before + share:
                    following[count] = receiver
                    count += 1
        frontier, following = following, frontier
    return reached


@numba_function
def _settle(state, frontier, shares, count, rules):
    """Takes the residual of each sender; what it does not send on stays with it."""
    for number in range(count):
        entity = frontier[number]
        amount, edges = state[entity, RESIDUAL], state[entity, DEGREE]
        shares[number] = amount * rules.alpha // (rules.parts * edges) if edges else 0
        state[entity, SETTLED] += amount - shares[number] * edges
        state[entity, RESIDUAL] = 0


@numba_function
def _visible(graph, is_target, query, entity):
    """Returns the receivers of the edges of the head, or of a target, that are not hidden."""
    receivers = np.empty(graph.offsets[entity + 1] - graph.offsets[entity], dtype=np.int32)
    count = 0
    for message in range(graph.sender_offsets[entity], graph.sender_offsets[entity + 1]):
        relation = graph.message_relation[message]
        for edge in range(graph.message_offsets[message], graph.message_offsets[message + 1]):
            receivers[count] = graph.receiver[edge]
            count += not is_hidden(is_target, query, entity, relation, receivers[count])
    return receivers[:count]


@numba_function
def _hidden_answers(graph, scratch, query, entity):
    """How many of the query relation's facts with this tail are hidden."""
    if len(query.edges):
        hidden = 0
        for edge in query.edges:
            hidden += np.int64(edge[1] == query.relation and edge[2] == entity)
        return hidden
    if entity == query.head and query.hides_links:
        hidden = 0
        for target in query.targets:
            hidden += np.int64(has_edge(graph, target, query.relation, entity))
        return hidden
    if scratch.is_target[entity]:
        return np.int64(has_edge(graph, query.head, query.relation, entity))
    return 0


@numba_function
def _prior_of_a_fact(graph, scratch, rules, query):
    """What each visible fact of the query's relation adds to the score of its tail."""
    visible = graph.num_facts[query.relation] - _hidden_answers(graph, scratch, query, query.head)
    for target in query.targets:
        if target != query.head:
            visible -= _hidden_answers(graph, scratch, query, target)
    return rules.prior // max(visible, 1)


@numba_function
def _add_tails(graph, scratch, rules, query, count, every_tail):
    """Adds the prior of the relation's tails, and the tails that the push did not reach.

    Returns:
        How many candidates there are then, and what the prior of other tails is at most.
    """
    state, candidates, is_target = scratch.state, scratch.candidates, scratch.is_target
    each = _prior_of_a_fact(graph, scratch, rules, query)
    start, end = graph.tail_offsets[query.relation], graph.tail_offsets[query.relation + 1]
    # The most frequent come first, and only targets and the head have facts hidden.
    stop = end if every_tail else min(end, start + rules.size + len(query.targets))
    for number in range(start, stop):
        entity, facts = np.int64(graph.tails[number]), np.int64(graph.tail_facts[number])
        if entity == query.head or is_target[entity]:
            facts -= _hidden_answers(graph, scratch, query, entity)
        if state[entity, RESIDUAL] == 0 and state[entity, SETTLED] == 0:
            candidates[count] = entity
            count += 1
        state[entity, SETTLED] += each * facts
        state[entity, HAS_PRIOR] = 1
    return count, each * graph.tail_facts[stop] if stop < end else 0


@numba_function
def _take_scores(state, candidates, count, rules):
    """Returns what the candidates have; of what is on its way, what they would keep."""
    scores, has_prior = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_)
    for number in range(count):
        entity = candidates[number]
        rest = state[entity, RESIDUAL] * (rules.parts - rules.alpha) // rules.parts
        scores[number] = state[entity, SETTLED] + rest
        has_prior[number] = state[entity, HAS_PRIOR] == 1
        state[entity, RESIDUAL] = state[entity, SETTLED] = state[entity, HAS_PRIOR] = 0
    return scores, has_prior
