"""Paths from head to answer that carry the answer's score, by gradients in messages.

A path of n facts uses n of the model's hops, in order, and waits at an entity during the others:
self weights and residual connections keep what has arrived. So a message may leave the head in any
hop, of any layer, and arrive in any later one. In each hop a message's gradient sums over all paths
that pass there, so no path carries more than its weakest message: the path's width. The search
takes the widest paths first, and then weighs them as NBFNet does, by the mean gradient of their
facts.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from knowformer.explanation.find.evidence_graph import EvidenceGraph

Floats = npt.NDArray[np.float64]

BEAM = 64  # continuations kept at one entity
MAX_STEPS = 20_000  # of the search; far more than it takes, but a bound on time
USUAL_LENGTH = 4  # facts in a path that a person still follows


@dataclass(frozen=True)
class EdgePath:
    """A path from head to answer, as numbers of edges."""

    edges: tuple[int, ...]
    weight: float  # mean gradient in its facts: log-odds that each brings, to first order
    width: float  # gradient in its weakest message, in the hops that make it widest


class _Suffix(NamedTuple):
    """The end of a path: it leaves ``entity`` in a hop not before ``hop``."""

    hop: int
    entity: int
    edges: tuple[int, ...]
    width: float
    visited: frozenset[int]


def find_paths(
    graph: EvidenceGraph,
    hops: Floats,
    fact_weights: Floats,
    *,
    head: int,
    answer: int,
    count: int,
    max_length: int = USUAL_LENGTH,
) -> list[EdgePath]:
    """Returns the paths that carry the answer's score, the heaviest first.

    Args:
        graph: the facts to explain by.
        hops: gradient in each edge's message, in each hop (S E).
        fact_weights: gradient in each fact, summed over hops and both directions.
        head: where paths start.
        answer: where they end.
        count: how many to weigh.
        max_length: the most facts in a path.
    """
    search = _WidestPaths(graph, hops, head=head, answer=answer, max_length=max_length)
    widest = [
        EdgePath(edges, float(fact_weights[graph.fact_of_edge[list(edges)]].mean()), width)
        for edges, width in search.first(count)
    ]
    return sorted((path for path in widest if path.weight > 0), key=lambda path: -path.weight)


class _WidestPaths:
    """Best-first search from the answer back to the head, guided by an exact bound."""

    def __init__(
        self, graph: EvidenceGraph, hops: Floats, *, head: int, answer: int, max_length: int
    ) -> None:
        self._graph = graph
        self._hops = hops
        self._head = head
        self._answer = answer
        self._max_length = max_length
        self._width_to = _widths_from(graph, hops, head)

    def first(self, count: int) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yields up to ``count`` distinct paths, the widest first; none visits an entity twice."""
        if self._head == self._answer:
            return
        order = counter()  # among equals, first come first served: the result is repeatable
        queue: list[tuple[float, int, _Suffix, Iterator[tuple[float, _Suffix]]]] = []

        def push_next(siblings: Iterator[tuple[float, _Suffix]]) -> None:
            for bound, suffix in siblings:
                heapq.heappush(queue, (-bound, next(order), suffix, siblings))
                return

        end = _Suffix(len(self._hops), self._answer, (), np.inf, frozenset([self._answer]))
        push_next(self._longer(end))
        seen: set[tuple[int, ...]] = set()
        for _ in range(MAX_STEPS):
            if not queue or len(seen) == count:
                return
            bound, _, suffix, siblings = heapq.heappop(queue)
            push_next(siblings)
            if suffix.entity != self._head:
                push_next(self._longer(suffix))
            elif suffix.edges not in seen:  # the same path in other hops came before, and wider
                seen.add(suffix.edges)
                yield suffix.edges, -bound

    def _longer(self, suffix: _Suffix) -> Iterator[tuple[float, _Suffix]]:
        """Yields the suffix with one more edge at its start, and how wide it can become."""
        first, last = self._graph.offsets[suffix.entity], self._graph.offsets[suffix.entity + 1]
        if len(suffix.edges) == self._max_length or suffix.hop == 0 or first == last:
            return
        senders = self._graph.sender[first:last]
        width = np.minimum(suffix.width, self._hops[: suffix.hop, first:last])
        bound = np.minimum(width, self._width_to[: suffix.hop][:, senders])
        for flat in _largest(bound, BEAM):
            hop, number = divmod(int(flat), len(senders))
            sender = int(senders[number])
            if bound[hop, number] <= 0:
                return
            if sender not in suffix.visited:
                edges = (int(first) + number, *suffix.edges)
                visited = suffix.visited | {sender}
                longer = _Suffix(hop, sender, edges, float(width[hop, number]), visited)
                yield float(bound[hop, number]), longer


def _widths_from(graph: EvidenceGraph, hops: Floats, head: int) -> Floats:
    """Returns, for s = 0 .. S, how wide a walk to each entity in the hops before s can be."""
    widths = np.full((len(hops) + 1, graph.num_entities), -np.inf)
    widths[:, head] = np.inf
    has_edges = np.flatnonzero(np.diff(graph.offsets))
    starts = graph.offsets[has_edges]
    for hop, gradients in enumerate(hops):
        if len(starts) == 0:
            break
        arriving = np.maximum.reduceat(np.minimum(widths[hop][graph.sender], gradients), starts)
        widths[hop + 1] = np.maximum(widths[hop], widths[hop + 1])
        widths[hop + 1, has_edges] = np.maximum(widths[hop + 1, has_edges], arriving)
    return widths


def _largest(values: Floats, count: int) -> npt.NDArray[np.int64]:
    """Returns the flat indices of the largest values, in order; equal ones by index."""
    flat = values.ravel()
    indices = np.arange(flat.size)
    if flat.size > count:
        indices = np.sort(np.argpartition(-flat, count - 1)[:count])
    return indices[np.argsort(-flat[indices], kind="stable")]
