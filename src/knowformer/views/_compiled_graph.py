"""What compiled extraction works on: a graph, scratch, and what is hidden from a query.

What takes an array per entity is scratch: a thread keeps its own, and every call leaves it as it
found it, by the list of what it touched. So the cost of a view does not grow with the graph.

An edge and its inverse are hidden together, so an entity sends as many edges as it receives, in the
graph and in a view: one array of bounds serves the order by receiver and the order by sender.
"""

# pyright: basic

from typing import NamedTuple

import numpy as np
from numba import njit

# What is kept of an entity, side by side because it is looked at together.
RESIDUAL = 0  # mass that has arrived and not been settled
SETTLED = 1  # mass that stays, and the weighted prior
DEGREE = 2  # visible edges; between calls, all edges
HAS_PRIOR = 3  # whether the prior is known

numba_function = njit(error_model="numpy", boundscheck=False)


class Graph(NamedTuple):
    """A graph's ``EdgeLists``, and its ``Tails``: the fields of both, in their order."""

    offsets: np.ndarray
    sender: np.ndarray
    relation: np.ndarray
    sender_offsets: np.ndarray
    message_relation: np.ndarray
    message_offsets: np.ndarray
    receiver: np.ndarray
    tail_offsets: np.ndarray  # those of r are tail_offsets[r] .. tail_offsets[r + 1]
    tails: np.ndarray  # the most frequent first
    tail_facts: np.ndarray  # how many facts have each of them
    num_facts: np.ndarray  # of each relation


class Scratch(NamedTuple):
    """Arrays with an element per entity."""

    is_target: np.ndarray
    state: np.ndarray  # four numbers each
    is_inside: np.ndarray  # a bit per entity: most edges of a hub lead out of a view
    place: np.ndarray  # in the view, of those inside
    candidates: np.ndarray  # a list
    frontier: np.ndarray  # a list
    following: np.ndarray  # a list
    shares: np.ndarray  # of frontier


@numba_function
def lower_bound(numbers, low, high, wanted):
    """The first place in a rising run whose number is at least ``wanted``."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@numba_function
def links(graph, sender, receiver):
    """Where the edges from one entity to another stand in the order by receiver."""
    low, high = np.int64(graph.offsets[receiver]), np.int64(graph.offsets[receiver + 1])
    start = lower_bound(graph.sender, low, high, sender)
    return start, lower_bound(graph.sender, start, high, sender + 1)


@numba_function
def has_edge(graph, sender, relation, receiver):
    start, stop = links(graph, sender, receiver)
    place = lower_bound(graph.relation, start, stop, relation)
    return place < stop and graph.relation[place] == relation


@numba_function
def mark_targets(scratch, query, value):
    for target in query.targets:
        scratch.is_target[target] = value


@numba_function
def is_listed(edges, sender, relation, receiver):
    found = False
    for edge in edges:
        found |= edge[0] == sender and edge[1] == relation and edge[2] == receiver
    return found


@numba_function
def is_hidden(is_target, query, sender, relation, receiver):
    """Whether an edge is hidden: they all run between the head and a target, or are listed."""
    if len(query.edges):
        ends = is_target[sender] and is_target[receiver]
        return ends and is_listed(query.edges, sender, relation, receiver)
    if sender == query.head and is_target[receiver]:
        return query.hides_links or relation == query.relation or (
            receiver == query.head and relation == query.inverse
        )  # fmt: skip
    if receiver == query.head and is_target[sender]:
        return query.hides_links or relation == query.inverse
    return False
