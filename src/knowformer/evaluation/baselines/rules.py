"""Rules of one or two steps, with how often they hold, counted on the training graph.

    r(x, y) <- p(x, y)               confidence: the share of pairs linked by p that r links too
    r(x, y) <- p(x, z), q(z, y)      confidence: the share of such walks that end in an r of x

Relations may be inverses. A walk of two steps passes a third entity, so a fact is never its own
evidence. A rule read backwards, r^-1(y, x) <- q^-1(y, z), p^-1(z, x), walks the same ways and so
holds as often: rules are counted for relations as named, and mirrored.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from knowformer.evaluation.baselines.evidence import confidence
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.fact_index import Ids, spread, stable_order
from knowformer.graph.inverse import inverse_of, is_inverse, num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph

MAX_FACTS = 1_000
"""Of one relation, to count its rules on: evenly spaced among all of them."""
MAX_RULES = 50
"""Of one relation: the surest."""
MIN_WALKS = 2
"""A single walk that ends right may be chance."""
WALKS_AT_ONCE = 2_000_000
"""Bounds memory; results do not depend on it."""
NO_STEP = -1
"""In place of a rule's second relation, if it has one step."""


@dataclass(frozen=True)
class Rules:
    """Rules by the relation that they lead to; a relation's surest ones first."""

    offsets: Int[np.ndarray, " bounds"]
    """Relation r, which may be an inverse, has rules ``offsets[r]`` to ``offsets[r + 1]``."""
    first: Int[np.ndarray, " N"]
    second: Int[np.ndarray, " N"]
    confidence: Float[np.ndarray, " N"]

    def __len__(self) -> int:
        return len(self.first)


def learn_rules(graph: KnowledgeGraph) -> Rules:
    """Counts how often rules hold in a graph."""
    edges, inverse = graph.adjacency, _inverses(graph.adjacency)
    sample, scale = _sample_facts(edges)
    bodies, num_right = _count_right(edges, sample, inverse)
    enough = num_right >= MIN_WALKS
    bodies, num_right = bodies[enough], num_right[enough]
    num_all = _count_all(edges, bodies[:, 1:], inverse)
    share = confidence(num_right * scale[bodies[:, 0]], num_all)
    return _surest(
        np.concatenate([bodies, _mirrored(bodies, inverse)]),
        np.concatenate([share, share]),
        num_with_inverses(edges.num_relations),
    )


def _inverses(edges: Adjacency) -> Ids:
    """The inverse of every relation id; of ``NO_STEP``, which is the last, itself."""
    relations = torch.arange(num_with_inverses(edges.num_relations))
    return np.append(inverse_of(relations, edges.num_relations).numpy(), NO_STEP)


def _mirrored(bodies: Ids, inverse: Ids) -> Ids:
    """Rules (relation, first, second) read backwards."""
    relation, first, second = inverse[bodies.T]
    has_two = second != NO_STEP
    return np.stack(
        [relation, np.where(has_two, second, first), np.where(has_two, first, NO_STEP)], 1
    )


def _sample_facts(edges: Adjacency) -> tuple[Ids, Float[np.ndarray, " R"]]:
    """Facts of every named relation, and how many facts each of them stands for."""
    index = edges.by_query
    every = index.column("relation")
    named = ~is_inverse(torch.from_numpy(every), edges.num_relations).numpy()
    kept = np.flatnonzero(named & (index.column("head") != index.column("tail")))
    every = every[kept]
    counts = np.bincount(every, minlength=edges.num_relations)
    kept = kept[stable_order(every)]
    taken = np.minimum(counts, MAX_FACTS)
    relations, nth = spread(np.zeros_like(taken), taken)
    starts = np.cumsum(counts) - counts
    places = starts[relations] + nth * counts[relations] // taken[relations]
    return index.layout.facts(index.keys[kept[places]]), counts / np.maximum(taken, 1)


def _count_right(edges: Adjacency, facts: Ids, inverse: Ids) -> tuple[Ids, Ids]:
    """Counts, for rules that hold for some of these facts, the walks that end right.

    Returns:
        Rules (relation, first, second) and their counts.
    """
    offsets, width = edges.by_query.offsets(edges.num_entities), len(inverse)
    degree = np.diff(offsets)
    # From the end with fewer edges: a hub's are many, and most lead elsewhere.
    backwards = degree[facts[:, 0]] > degree[facts[:, 2]]
    start, relation, end = facts.T
    start, end = np.where(backwards, end, start), np.where(backwards, start, end)
    relation = np.where(backwards, inverse[relation], relation)
    found: list[tuple[Ids, Ids]] = []
    for some in _chunks(degree[start]):
        x, r, y = start[some], relation[some], end[some]
        rows, places = spread(offsets[x], offsets[x + 1])
        keys, layout = edges.by_query.keys[places], edges.by_query.layout
        step, z = layout.column(keys, "relation"), layout.column(keys, "tail")
        direct = (z == y[rows]) & (step != r[rows])
        passing = np.flatnonzero((z != y[rows]) & (z != x[rows]))
        walk, last = edges.by_pair.members(y[rows[passing]], z[passing])
        through = passing[walk]
        codes = [
            (r[rows[direct]] * width + step[direct]) * width + width - 1,
            (r[rows[through]] * width + step[through]) * width + last,
        ]
        found.append(np.unique(np.concatenate(codes), return_counts=True))
    if not found:
        return np.empty((0, 3), dtype=np.int64), np.empty(0, dtype=np.int64)
    codes = np.concatenate([codes for codes, _ in found])
    bodies = np.stack([codes // width**2, codes // width % width, codes % width], 1)
    bodies[bodies[:, 2] == width - 1, 2] = NO_STEP
    from_inverse = is_inverse(torch.from_numpy(bodies[:, 0]), edges.num_relations).numpy()
    bodies[from_inverse] = _mirrored(bodies[from_inverse], inverse)
    return _summed(bodies, np.concatenate([counts for _, counts in found]), width)


def _summed(bodies: Ids, counts: Ids, width: int) -> tuple[Ids, Ids]:
    """Adds up the counts of rules that are listed more than once."""
    codes = (bodies[:, 0] * width + bodies[:, 1]) * width + bodies[:, 2] % width
    _, at, place = np.unique(codes, return_index=True, return_inverse=True)
    return bodies[at], np.bincount(place, weights=counts).astype(np.int64)


def _count_all(edges: Adjacency, steps: Ids, inverse: Ids) -> Float[np.ndarray, " N"]:
    """Counts all walks of these steps (first, second), right or wrong, but those that turn back."""
    width, index = len(inverse), edges.by_query
    starts = index.run_starts()
    size = np.diff(starts, append=len(index)).astype(np.float64)
    keys = index.keys[starts]
    relation, entity = index.layout.column(keys, "relation"), index.layout.column(keys, "head")
    wanted, place = np.unique(steps[:, 0] * width + steps[:, 1], return_inverse=True)
    total = np.zeros(len(wanted))
    if len(wanted) == 0:
        return total
    begin, end = np.searchsorted(entity, entity), np.searchsorted(entity, entity, side="right")
    for some in _chunks(end - begin):
        # Into an entity by the inverse of one of its relations, and out of it by another.
        into, out = spread(begin[some], end[some])
        into += some.start
        codes = inverse[relation[into]] * width + relation[out]
        at = np.searchsorted(wanted, codes).clip(max=len(wanted) - 1)
        is_wanted = wanted[at] == codes
        walks = size[into] * (size[out] - (into == out))
        total += np.bincount(at[is_wanted], weights=walks[is_wanted], minlength=len(wanted))
    of_one_step = np.bincount(relation, weights=size, minlength=width)
    return np.where(steps[:, 1] == NO_STEP, of_one_step[steps[:, 0]], total[place])


def _chunks(sizes: Ids) -> Iterator[slice]:
    """Cuts items into slices of about ``WALKS_AT_ONCE``, by the size of each item."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + WALKS_AT_ONCE)))
        yield slice(first, last)
        first = last


def _surest(bodies: Ids, shares: Float[np.ndarray, " N"], num_relations: int) -> Rules:
    """Sorts rules and keeps the best of every relation."""
    order = np.lexsort((bodies[:, 2], bodies[:, 1], -shares, bodies[:, 0]))
    relation = bodies[order, 0]
    nth = np.arange(len(order)) - np.searchsorted(relation, relation)
    order = order[nth < MAX_RULES]
    relation, first, second = bodies[order].T
    offsets = np.searchsorted(relation, np.arange(num_relations + 1))
    return Rules(offsets, first, second, shares[order])
