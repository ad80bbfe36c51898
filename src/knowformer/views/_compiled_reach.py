"""Compiled: the entities that may be in a view, with their scores."""

# pyright: basic

import numpy as np

from knowformer.views._compiled_graph import (
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
        Entities in any order, and their scores; the head is the first.
    """
    mark_targets(scratch, query, True)
    _hide_degrees(graph, scratch, query)
    reached = _push(graph, scratch, rules, query)
    count = _add_tails(graph, scratch, rules, query, reached, every_tail)
    scores = _score(graph, scratch, rules, query, count)
    _restore(graph, scratch, query, reached)
    mark_targets(scratch, query, False)
    return scratch.candidates[:count].copy(), scores


@numba_function
def _hide_degrees(graph, scratch, query):
    """Takes hidden edges off the degrees."""
    for target in query.targets:
        if query.hides_links:
            start, stop = links(graph, query.head, target)
            hidden = stop - start
        else:
            hidden = np.int64(has_edge(graph, query.head, query.relation, target))
        scratch.degree[query.head] -= hidden
        # A hidden loop is two edges of the head; between links, both are among those counted.
        if target != query.head or not query.hides_links:
            scratch.degree[target] -= hidden


@numba_function
def _restore(graph, scratch, query, reached):
    """Leaves the scratch as it was."""
    for number in range(reached):
        scratch.residual[scratch.candidates[number]] = 0
        scratch.settled[scratch.candidates[number]] = 0
    scratch.degree[query.head] = graph.offsets[query.head + 1] - graph.offsets[query.head]
    for target in query.targets:
        scratch.degree[target] = graph.offsets[target + 1] - graph.offsets[target]


@numba_function
def _push(graph, scratch, rules, query):
    """Personalised PageRank by forward push, in rounds: what arrives moves on in the next."""
    degree, residual, settled = scratch.degree, scratch.residual, scratch.settled
    frontier, following = scratch.frontier, scratch.following
    shares, candidates, is_target = scratch.shares, scratch.candidates, scratch.is_target
    offsets, all_receivers, tolerance = graph.offsets, graph.receiver, rules.tolerance
    candidates[0], frontier[0] = query.head, query.head
    residual[query.head] = rules.mass
    reached, count = 1, 1
    while count:
        _settle(degree, residual, settled, frontier, shares, count, rules)
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
                before = residual[receiver]
                residual[receiver] = before + share
                if before == 0 and settled[receiver] == 0:
                    candidates[reached] = receiver
                    reached += 1
                threshold = tolerance * degree[receiver]
                if before < threshold <= before + share:
                    following[count] = receiver
                    count += 1
        frontier, following = following, frontier
    return reached


@numba_function
def _settle(degree, residual, settled, frontier, shares, count, rules):
    """Takes the residual of each sender; what it does not send on stays with it."""
    for number in range(count):
        entity = frontier[number]
        amount, edges = residual[entity], np.int64(degree[entity])
        shares[number] = amount * rules.alpha // (rules.parts * edges) if edges else 0
        settled[entity] += amount - shares[number] * edges
        residual[entity] = 0


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
    if entity == query.head and query.hides_links:
        hidden = 0
        for target in query.targets:
            hidden += np.int64(has_edge(graph, target, query.relation, entity))
        return hidden
    if scratch.is_target[entity]:
        return np.int64(has_edge(graph, query.head, query.relation, entity))
    return 0


@numba_function
def _message(sender_offsets, message_relation, sender, relation):
    """The number of a message; -1 if there is none."""
    start, stop = np.int64(sender_offsets[sender]), np.int64(sender_offsets[sender + 1])
    message = lower_bound(message_relation, start, stop, relation)
    return message if message < stop and message_relation[message] == relation else -1


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
    """Appends the relation's tails that the push did not reach; returns how many there are then."""
    residual, settled, candidates = scratch.residual, scratch.settled, scratch.candidates
    start, stop = graph.tail_offsets[query.relation], graph.tail_offsets[query.relation + 1]
    if not every_tail:
        # The most frequent come first, and only targets and the head have facts hidden.
        stop = min(stop, start + rules.size + len(query.targets))
    for number in range(start, stop):
        entity = graph.tails[number]
        if residual[entity] == 0 and settled[entity] == 0:
            candidates[count] = entity
            count += 1
    return count


@numba_function
def _score(graph, scratch, rules, query, count):
    """Returns PageRank and weighted prior of every candidate."""
    each = _prior_of_a_fact(graph, scratch, rules, query)
    residual, settled, is_target = scratch.residual, scratch.settled, scratch.is_target
    sender_offsets, message_relation = graph.sender_offsets, graph.message_relation
    scores = np.empty(count, dtype=np.int64)
    for number in range(count):
        entity = scratch.candidates[number]
        rest = residual[entity] * (rules.parts - rules.alpha) // rules.parts
        message = _message(sender_offsets, message_relation, entity, query.inverse)
        facts = np.int64(0)
        if message >= 0:
            facts += graph.message_offsets[message + 1] - graph.message_offsets[message]
            if entity == query.head or is_target[entity]:
                facts -= _hidden_answers(graph, scratch, query, entity)
        scores[number] = settled[entity] + rest + each * facts
    return scores
