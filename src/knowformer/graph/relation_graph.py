"""The relation graph: relations as nodes, edges that say how two of them meet in the facts.

What a relation is can be told from where it stands among the others, without its name: a model that
sees relations through this graph alone answers on graphs whose relations it has never seen.

Two relations meet in an entity that is head or tail of both, or in a pair of entities that both of
them link. An edge r1 -> r2 also says how strongly: which fraction of r1's entities (or pairs) and
which fraction of r2's are shared. Inverse relations are nodes too.
"""

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.edge_orders import EdgeIndices
from knowformer.graph.fact_index import BY_QUERY, BY_RECEIVER, FactIndex, Ids, sorted_distinct
from knowformer.graph.inverse import inverse_of, num_with_inverses
from knowformer.graph.traversal import connected_components
from knowformer.kernels.interface import Edges

Counts = npt.NDArray[np.int64]

MEETINGS = ("head-head", "head-tail", "tail-head", "tail-tail", "pair-pair")
# A fraction is weak below a tenth and strong from a half on. In whole numbers: nothing is rounded.
THRESHOLDS = ((1, 10), (1, 2))
NUM_LEVELS = len(THRESHOLDS) + 1
NUM_MEETING_KINDS = len(MEETINGS) * NUM_LEVELS**2
PAIRS_AT_ONCE = 2**21  # of relations, which bounds the memory that counting takes


@dataclass(frozen=True)
class RelationGraph:
    """Relations in components that never meet; a query's relation sees its own component."""

    edges: Edges
    """Of each component, side by side: nodes are relations, relations are kinds of meeting."""
    relations: Int[Tensor, " R"]
    """The relation of each node, component by component; inverses are relations too."""
    place: Int[Tensor, " R"]
    """The node of each relation, counted through all components."""
    start: Int[Tensor, " R"]
    """For each relation the first node of its component."""
    stop: Int[Tensor, " R"]
    """For each relation the node after the last one of its component."""


def relation_graph(adjacency: Adjacency) -> RelationGraph:
    """Returns the relation graph of a graph, made once and kept as long as the adjacency is."""
    if relation_graph not in adjacency.memo:
        adjacency.memo[relation_graph] = build_relation_graph(adjacency)
    return adjacency.memo[relation_graph]


def build_relation_graph(adjacency: Adjacency) -> RelationGraph:
    """Counts the entities and pairs that relations share.

    Time and memory grow with the facts, and with the square of an entity's relations.
    """
    num_relations = num_with_inverses(adjacency.num_relations)
    shared_heads = _shared(_entity_relations(adjacency), num_relations)
    shared_pairs = _shared(_pair_relations(adjacency), num_relations)
    own = np.arange(num_relations)
    inverse: Ids = inverse_of(torch.from_numpy(own), adjacency.num_relations).numpy()
    # A tail of r is a head of its inverse: meetings of tails are those of inverses.
    ends = product((own, inverse), (own, inverse))
    meetings = [_edges(shared_heads, number, *nodes) for number, nodes in enumerate(ends)]
    meetings.append(_edges(shared_pairs, len(MEETINGS) - 1, own, own))
    return _in_components(np.concatenate(meetings), num_relations)


def _in_components(meetings: Ids, num_relations: int) -> RelationGraph:
    """Puts the relations of each component side by side.

    Args:
        meetings: (relation, kind, relation).
        num_relations: R.
    """
    root = connected_components(meetings[:, 0], meetings[:, 2], num_relations)
    order = np.argsort(root, kind="stable")
    place = np.argsort(order, kind="stable")
    roots = root[order]
    start = np.searchsorted(roots, root)
    stop = np.searchsorted(roots, root, side="right")
    by_component = meetings[np.argsort(root[meetings[:, 0]], kind="stable")]
    bounds = np.searchsorted(root[by_component[:, 0]], np.append(np.unique(root), num_relations))
    subgraphs: list[Edges] = []
    for one, (first, last) in zip(np.unique(root), pairwise(bounds.tolist()), strict=True):
        nodes = place[by_component[first:last][:, [0, 2]]] - start[one]
        facts = np.stack([nodes[:, 0], by_component[first:last, 1], nodes[:, 1]], axis=1)
        size = {"num_entities": int(stop[one] - start[one]), "num_relations": NUM_MEETING_KINDS}
        by_receiver, by_sender = (FactIndex.of(facts, o, **size) for o in (BY_RECEIVER, BY_QUERY))
        indices = EdgeIndices(**size, by_receiver=by_receiver, by_sender=by_sender)
        subgraphs.append(indices.build_edges())
    return RelationGraph(Edges.join(subgraphs), *map(torch.from_numpy, (order, place, start, stop)))


def _entity_relations(adjacency: Adjacency) -> tuple[Ids, Ids]:
    """Returns the distinct pairs of an entity and a relation that it is a head of."""
    index = adjacency.by_query
    keys = sorted_distinct(index.keys >> index.layout.bits("tail"))
    bits = index.layout.bits("relation")
    return keys >> bits, keys & ((1 << bits) - 1)


def _pair_relations(adjacency: Adjacency) -> tuple[Ids, Ids]:
    """Returns each linked pair of entities, numbered, with the relations that link it."""
    index = adjacency.by_pair
    bits = index.layout.bits("relation")
    pairs = index.keys >> bits
    number = np.cumsum(np.append(0, pairs[1:] != pairs[:-1]))[: len(pairs)]
    return number, index.keys & ((1 << bits) - 1)


def _shared(members: tuple[Ids, Ids], num_relations: int) -> tuple[Ids, Ids, Counts]:
    """Returns pairs of relations with what they share, counted; a relation shares all with itself.

    Args:
        members: something that relations have, numbered and in order, and a relation that has it.
        num_relations: R.
    """
    thing, relation = members
    starts = np.flatnonzero(np.append(True, thing[1:] != thing[:-1])[: len(thing)])
    sizes = np.diff(np.append(starts, len(thing)))
    keys, counts = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for some in np.split(np.arange(len(starts)), _cuts(sizes**2)):
        # Every relation of a thing beside every relation of it.
        first = np.repeat(np.arange(len(some)), sizes[some] ** 2)
        place = np.arange(len(first)) - np.repeat(np.cumsum(sizes[some] ** 2), sizes[some] ** 2)
        row, column = np.divmod(place % (sizes[some] ** 2)[first], sizes[some][first])
        start = starts[some][first]
        found, number = np.unique(
            relation[start + row] * num_relations + relation[start + column], return_counts=True
        )
        keys, place = np.unique(np.concatenate([keys, found]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, number])).astype(np.int64)
    return *np.divmod(keys, num_relations), counts


def _cuts(costs: Counts) -> Ids:
    """Returns where to cut a sequence so that no part costs much more than ``PAIRS_AT_ONCE``."""
    part = np.cumsum(costs) // PAIRS_AT_ONCE
    return np.flatnonzero(part[1:] != part[:-1]) + 1


def _edges(shared: tuple[Ids, Ids, Counts], meeting: int, of_first: Ids, of_second: Ids) -> Ids:
    """Returns edges (relation, kind, relation) of one meeting.

    Args:
        shared: what ``_shared`` returns.
        meeting: its number.
        of_first: the node that the first relation stands for: itself, or its inverse.
        of_second: the same of the second one.
    """
    first, second, count = shared
    is_self = first == second
    total = np.zeros(len(of_first), dtype=np.int64)
    total[first[is_self]] = count[is_self]
    levels = _level(count, total[first]) * NUM_LEVELS + _level(count, total[second])
    kind = meeting * NUM_LEVELS**2 + levels
    edges = np.stack([of_first[first], kind, of_second[second]], axis=1)
    # That a relation meets itself says nothing; that its tails are its inverse's heads links both.
    return edges[(edges[:, 0] != edges[:, 2]) | ~is_self]


def _level(count: Counts, total: Counts) -> Ids:
    """Returns how large a fraction is: the number of thresholds that it reaches."""
    level = np.zeros(len(count), dtype=np.int64)
    for above, below in THRESHOLDS:
        level += count * below >= total * above
    return level
