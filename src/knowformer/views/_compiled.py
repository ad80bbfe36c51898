"""Extraction of one view in compiled code; its cost does not grow with the graph.

What takes an array per entity is scratch: a thread keeps its own, and every extraction leaves it
as it found it, by the list of what it touched. ``reference.py`` says the same in plain Python.

An edge and its inverse are hidden together, so an entity sends as many edges as it receives, in
the graph and in a view: one array of bounds serves the order by receiver and the order by sender.
"""

# pyright: basic

from typing import NamedTuple

import numpy as np
from numba import njit

MANY_EDGES = 16  # per member: a message with more is searched, not read

numba_function = njit(error_model="numpy", boundscheck=False)


class Graph(NamedTuple):
    """A graph's edges as in ``Edges``, and the tails of every relation."""

    offsets: np.ndarray
    sender: np.ndarray
    relation: np.ndarray
    sender_offsets: np.ndarray
    message_relation: np.ndarray
    message_offsets: np.ndarray
    receiver: np.ndarray
    tail_offsets: np.ndarray  # those of r are tail_offsets[r] .. tail_offsets[r + 1]
    tails: np.ndarray  # the most frequent first
    num_facts: np.ndarray  # of each relation


class Scratch(NamedTuple):
    """Arrays with an element per entity."""

    degree: np.ndarray  # visible edges; between extractions, all edges
    is_target: np.ndarray
    residual: np.ndarray  # mass that has arrived and not been settled
    settled: np.ndarray
    place: np.ndarray  # in the view; -1 outside
    candidates: np.ndarray  # a list
    frontier: np.ndarray  # a list
    following: np.ndarray  # a list
    shares: np.ndarray  # of frontier


class EdgeArrays(NamedTuple):
    """Arrays of ``Edges``, or the parts of them that belong to one view."""

    offsets: np.ndarray
    sender: np.ndarray
    relation: np.ndarray
    message: np.ndarray
    sender_offsets: np.ndarray
    message_sender: np.ndarray
    message_relation: np.ndarray
    message_offsets: np.ndarray
    receiver: np.ndarray
    by_message: np.ndarray


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
    _hide(graph, scratch, query)
    reached = _push(graph, scratch, rules, query)
    count = _add_tails(graph, scratch, rules, query, reached, every_tail)
    scores = _score(graph, scratch, rules, query, count)
    for number in range(reached):
        scratch.residual[scratch.candidates[number]] = 0
        scratch.settled[scratch.candidates[number]] = 0
    _unhide(graph, scratch, query)
    return scratch.candidates[:count].copy(), scores


def collect(graph, scratch, query, members):
    """Returns the visible edges among members, which rise, in the order by message."""
    _hide(graph, scratch, query)
    edges = _inside(graph, scratch, query, members)
    _unhide(graph, scratch, query)
    return edges


@numba_function
def _lower_bound(numbers, low, high, wanted):
    """The first place in a rising run whose number is at least ``wanted``."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@numba_function
def _links(graph, sender, receiver):
    """Where the edges from one entity to another stand in the order by receiver."""
    low, high = np.int64(graph.offsets[receiver]), np.int64(graph.offsets[receiver + 1])
    start = _lower_bound(graph.sender, low, high, sender)
    return start, _lower_bound(graph.sender, start, high, sender + 1)


@numba_function
def _has_edge(graph, sender, relation, receiver):
    start, stop = _links(graph, sender, receiver)
    place = _lower_bound(graph.relation, start, stop, relation)
    return place < stop and graph.relation[place] == relation


@numba_function
def _hide(graph, scratch, query):
    """Marks targets, and takes hidden edges off the degrees."""
    for target in query.targets:
        scratch.is_target[target] = True
        if query.hides_links:
            start, stop = _links(graph, query.head, target)
            hidden = stop - start
        else:
            hidden = np.int64(_has_edge(graph, query.head, query.relation, target))
        scratch.degree[query.head] -= hidden
        # A hidden loop is two edges of the head; between links, both are among those counted.
        if target != query.head or not query.hides_links:
            scratch.degree[target] -= hidden


@numba_function
def _unhide(graph, scratch, query):
    _restore_degree(graph, scratch, query.head)
    for target in query.targets:
        scratch.is_target[target] = False
        _restore_degree(graph, scratch, target)


@numba_function
def _restore_degree(graph, scratch, entity):
    scratch.degree[entity] = graph.offsets[entity + 1] - graph.offsets[entity]


@numba_function
def _is_hidden(is_target, query, sender, relation, receiver):
    """Whether an edge is hidden: they all run between the head and a target."""
    if sender == query.head and is_target[receiver]:
        return query.hides_links or relation == query.relation or (
            receiver == query.head and relation == query.inverse
        )  # fmt: skip
    if receiver == query.head and is_target[sender]:
        return query.hides_links or relation == query.inverse
    return False


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
            count += not _is_hidden(is_target, query, entity, relation, receivers[count])
    return receivers[:count]


@numba_function
def _hidden_answers(graph, scratch, query, entity):
    """How many of the query relation's facts with this tail are hidden."""
    if entity == query.head and query.hides_links:
        hidden = 0
        for target in query.targets:
            hidden += np.int64(_has_edge(graph, target, query.relation, entity))
        return hidden
    if scratch.is_target[entity]:
        return np.int64(_has_edge(graph, query.head, query.relation, entity))
    return 0


@numba_function
def _message(sender_offsets, message_relation, sender, relation):
    """The number of a message; -1 if there is none."""
    start, stop = np.int64(sender_offsets[sender]), np.int64(sender_offsets[sender + 1])
    message = _lower_bound(message_relation, start, stop, relation)
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


@numba_function
def _inside(graph, scratch, query, members):
    """Returns the edges among members: bounds by sender, messages by sender, and by message."""
    size, place, is_target = len(members), scratch.place, scratch.is_target
    bounds, receivers, relations = graph.message_offsets, graph.receiver, graph.message_relation
    for number in range(size):
        place[members[number]] = number
    offsets, sender_offsets = np.zeros(size + 1, np.int32), np.zeros(size + 1, np.int32)
    receiver, relation = np.empty(8 * size, np.int32), np.empty(4 * size, np.int32)
    message_offsets = np.zeros(4 * size + 1, np.int32)
    edges, messages = 0, 0
    for number in range(size):
        entity = members[number]
        first, last = graph.sender_offsets[entity], graph.sender_offsets[entity + 1]
        if messages + last - first > len(relation):
            relation = _grown(relation, messages + last - first)
            message_offsets = _grown(message_offsets, messages + last - first + 1)
        most = min(bounds[last] - bounds[first], (last - first) * size)
        if edges + most >= len(receiver):
            receiver = _grown(receiver, edges + most + 1)
        is_marked = entity == query.head or is_target[entity]
        for message in range(first, last):
            before, start, stop = edges, np.int64(bounds[message]), np.int64(bounds[message + 1])
            if stop - start > MANY_EDGES * size:
                edges = _search(receivers, start, stop, members, receiver, edges)
            else:
                for edge in range(start, stop):
                    inside = place[np.uint64(receivers[edge])]
                    receiver[np.uint64(edges)] = inside  # one outside is overwritten by the next
                    edges += inside >= 0
            if is_marked:
                edges = _drop_hidden(
                    is_target, query, members, entity, relations[message], receiver, before, edges
                )
            relation[messages] = relations[message]
            messages += edges > before
            message_offsets[messages] = edges
        offsets[number + 1], sender_offsets[number + 1] = edges, messages
    for number in range(size):
        place[members[number]] = -1
    return (
        offsets,
        sender_offsets,
        relation[:messages],
        message_offsets[: messages + 1],
        receiver[:edges],
    )


@numba_function
def _grown(array, size):
    """Returns an array with room for so many elements and as many again."""
    grown = np.empty(2 * size, dtype=array.dtype)
    for number in range(len(array)):
        grown[number] = array[number]
    return grown


@numba_function
def _search(receivers, start, stop, members, inside, count):
    """Appends the places of the members that a message with very many edges reaches."""
    for number in range(len(members)):
        start = _lower_bound(receivers, start, stop, members[number])
        if start < stop and receivers[start] == members[number]:
            inside[count] = number
            count += 1
    return count


@numba_function
def _drop_hidden(is_target, query, members, sender, relation, inside, start, stop):
    """Takes hidden edges off the end of a list; returns where it ends then."""
    end = start
    for edge in range(start, stop):
        place = inside[edge]
        if not _is_hidden(is_target, query, sender, relation, members[place]):
            inside[end] = place
            end += 1
    return end


def lay_out(view, first_edge, first_message, edges):
    """Writes a view's edges among those of other views, in both orders.

    Args:
        view: what ``collect`` returns.
        first_edge: how many edges stand before it.
        first_message: how many messages stand before it.
        edges: arrays of the joined ``Edges``, from this view's first entity, edge and message on.
    """
    offsets, sender_offsets, relation, message_offsets, receiver = view
    for sender in range(len(offsets) - 1):
        edges.offsets[sender] = first_edge + offsets[sender]
        edges.sender_offsets[sender] = first_message + sender_offsets[sender]
        for message in range(sender_offsets[sender], sender_offsets[sender + 1]):
            edges.message_sender[message] = sender
            edges.message_relation[message] = relation[message]
            edges.message_offsets[message] = first_edge + message_offsets[message]
    _place_edges(
        offsets.copy(),
        message_offsets,
        receiver,
        edges.receiver,
        edges.message,
        edges.by_message,
        first_edge,
    )
    _carry_messages(
        first_message,
        edges.message_sender,
        edges.message_relation,
        edges.message,
        edges.sender,
        edges.relation,
    )


@numba_function
def _place_edges(free, message_offsets, receiver, to_receiver, to_message, to_place, first_edge):
    """Puts each edge where the next one of its receiver goes: by rising sender and relation."""
    for message in range(len(message_offsets) - 1):
        for edge in range(message_offsets[message], message_offsets[message + 1]):
            number = np.uint64(receiver[edge])
            place = free[number]
            free[number] = place + 1
            to_message[np.uint64(place)] = message
            to_receiver[edge] = number
            to_place[edge] = first_edge + place


@numba_function
def _carry_messages(first_message, message_sender, message_relation, message, sender, relation):
    """Copies to every edge what its message carries."""
    for edge in range(len(message)):
        number = np.uint64(message[edge])
        sender[edge] = message_sender[number]
        relation[edge] = message_relation[number]
        message[edge] += first_message
