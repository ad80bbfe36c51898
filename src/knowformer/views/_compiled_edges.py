"""Compiled: the edges of views, among their entities and then side by side."""

# pyright: basic

from typing import NamedTuple

import numpy as np

from knowformer.views._compiled_graph import is_hidden, lower_bound, mark_targets, numba_function

MANY_EDGES = 16  # per member: a message with more is searched, not read


class EdgeArrays(NamedTuple):
    """The arrays of ``Edges``."""

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


def collect(graph, scratch, query, members):
    """Returns the visible edges among members, which rise: bounds and lists by message."""
    mark_targets(scratch, query, True)
    for number in range(len(members)):
        scratch.place[members[number]] = number
        _flip(scratch.is_inside, np.uint64(members[number]))
    view = _inside(graph, scratch.is_inside, scratch.is_target, query, members)
    _take_places(view[-1], scratch.place)
    for number in range(len(members)):
        _flip(scratch.is_inside, np.uint64(members[number]))
    mark_targets(scratch, query, False)
    return view


@numba_function
def _flip(bits, entity):
    bits[entity >> np.uint64(6)] ^= np.uint64(1) << (entity & np.uint64(63))


@numba_function
def _take_places(entities, place):
    for number in range(len(entities)):
        entities[number] = place[np.uint64(entities[number])]


@numba_function
def _inside(graph, is_inside, is_target, query, members):
    """As ``collect``, with the receivers as they are numbered in the graph."""
    size = len(members)
    bounds, receivers, relations = graph.message_offsets, graph.receiver, graph.message_relation
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
                    other = np.uint64(receivers[edge])
                    receiver[np.uint64(edges)] = other  # one outside is overwritten by the next
                    word = is_inside[other >> np.uint64(6)]
                    edges += np.int64(word >> (other & np.uint64(63)) & np.uint64(1))
            if is_marked:
                edges = _drop_hidden(
                    is_target, query, entity, relations[message], receiver, before, edges
                )
            relation[messages] = relations[message]
            messages += edges > before
            message_offsets[messages] = edges
        offsets[number + 1], sender_offsets[number + 1] = edges, messages
    relation, message_offsets = relation[:messages], message_offsets[: messages + 1]
    return offsets, sender_offsets, relation, message_offsets, receiver[:edges]


@numba_function
def _grown(array, size):
    """Returns an array with room for so many elements and as many again."""
    grown = np.empty(2 * size, dtype=array.dtype)
    for number in range(len(array)):
        grown[number] = array[number]
    return grown


@numba_function
def _search(receivers, start, stop, members, receiver, edges):
    """Appends the members that a message with very many edges reaches."""
    for number in range(len(members)):
        start = lower_bound(receivers, start, stop, members[number])
        if start < stop and receivers[start] == members[number]:
            receiver[edges] = members[number]
            edges += 1
    return edges


@numba_function
def _drop_hidden(is_target, query, sender, relation, receiver, start, stop):
    """Takes hidden edges off the end of a list; returns where it ends then."""
    end = start
    for edge in range(start, stop):
        receiver[end] = receiver[edge]
        end += not is_hidden(is_target, query, sender, relation, receiver[edge])
    return end


def lay_out(view, first_entity, first_edge, first_message, edges):
    """Writes a view among others, in both orders of edges.

    Args:
        view: what ``collect`` returns.
        first_entity: how many entities stand before it.
        first_edge: how many edges stand before it.
        first_message: how many messages stand before it.
        edges: of all views.
    """
    offsets, sender_offsets, relation, message_offsets, receiver = view
    for sender in range(len(offsets) - 1):
        edges.offsets[first_entity + sender] = first_edge + offsets[sender]
        edges.sender_offsets[first_entity + sender] = first_message + sender_offsets[sender]
        for message in range(sender_offsets[sender], sender_offsets[sender + 1]):
            edges.message_sender[first_message + message] = sender
            edges.message_relation[first_message + message] = relation[message]
            edges.message_offsets[first_message + message] = first_edge + message_offsets[message]
    own = slice(first_edge, first_edge + len(receiver))
    _place_edges(offsets.copy(), message_offsets, receiver, first_edge, first_message,
                 edges.receiver[own], edges.message[own], edges.by_message[own])  # fmt: skip
    _copy_messages(edges.message_sender, edges.message_relation,
                   edges.message[own], edges.sender[own], edges.relation[own])  # fmt: skip


@numba_function
def _place_edges(free, bounds, receiver, first_edge, first_message, to_receiver, to_message, to_place):  # fmt: skip
    """Puts each edge where the next one of its receiver goes: by rising sender and relation."""
    for message in range(len(bounds) - 1):
        for edge in range(bounds[message], bounds[message + 1]):
            number = np.uint64(receiver[edge])
            place = free[number]
            free[number] = place + 1
            to_message[np.uint64(place)] = first_message + message
            to_receiver[edge] = number
            to_place[edge] = first_edge + place


@numba_function
def _copy_messages(message_sender, message_relation, message, sender, relation):
    """Gives every edge the sender and the relation of its message."""
    for edge in range(len(message)):
        number = np.uint64(message[edge])
        sender[edge] = message_sender[number]
        relation[edge] = message_relation[number]
