"""Carving: small graphs drawn at random from the training graph, each with facts held out to ask.

A model that reads relations from the graph sees one relation graph for each graph it trains on, and
could learn a few of them by heart. Carved graphs are all different: in their entities, in which
relations they have and in how dense they are. What is asked is not in the graph, nor in its
relation graph, just as when the model is used.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.fact_index import Ids
from knowformer.graph.traversal import connected_components

SMALLEST = 300  # entities of a carved graph, if it may have as many
NEIGHBOURS = (3, 50)  # of an entity that join it, at most: a number of this range for each graph
KEPT = 0.4  # of the facts, at least, and likewise of the relations; every second graph keeps all
MOST_FACTS = 30_000
ASKED = (0.05, 0.3)  # of the facts of a carved graph: a fraction of this range for each
TRIES = 20  # to draw a graph that has something to ask


@dataclass(frozen=True)
class CarvedGraph:
    """A graph of its own: entities and relations are numbered within it."""

    visible: Int[Tensor, "N 3"]
    asked: Int[Tensor, "M 3"]
    """Other facts, whose relations and entities have visible facts."""
    entities: Ids
    """The number of each entity in the graph it was carved from."""
    relations: Ids
    """The same of each relation."""


class Carver:
    """Draws graphs from one graph, or from one of several that stand side by side as one."""

    def __init__(self, adjacency: Adjacency, facts: Int[Tensor, "N 3"], *, size: int) -> None:
        """Prepares a graph.

        Args:
            adjacency: its edges.
            facts: its facts.
            size: entities of a carved graph, at most; sizes are drawn evenly on a logarithmic
                scale.
        """
        self._num_entities, self._num_relations = adjacency.num_entities, adjacency.num_relations
        heads = adjacency.by_query.column("head")
        self._neighbours = adjacency.by_query.column("tail")
        self._starts = np.searchsorted(heads, np.arange(adjacency.num_entities + 1))
        self._size = min(size, adjacency.num_entities)
        self._sources = _sources(facts.numpy(), adjacency)
        # By the square root: large graphs teach more, but no graph drowns the others.
        sizes = np.sqrt([len(source) for source in self._sources])
        self._shares = sizes / sizes.sum()

    def carve(self, generator: torch.Generator) -> CarvedGraph | None:
        """Returns a random graph; None if none has anything to ask."""
        seed = int(torch.randint(2**62, (), generator=generator))
        random = np.random.Generator(np.random.PCG64(seed))
        for _ in range(TRIES):
            source = self._sources[random.choice(len(self._sources), p=self._shares)]
            facts = self._facts_among(source, self._region(source, random))
            carved = _split(self._thinned(random.permutation(facts), random), random)
            if len(carved.asked):
                return carved
        return None

    def _region(self, source: Ids, random: np.random.Generator) -> Ids:
        """Returns entities that are close to each other, or to one of several if these are few."""
        size = _log_uniform(random, min(SMALLEST, self._size), self._size)
        most = _log_uniform(random, *NEIGHBOURS)
        is_member = np.zeros(self._num_entities, dtype=bool)
        reached = np.empty(0, dtype=np.int64)
        room = round(size)
        while room > 0:
            if not len(reached):
                free = source[random.integers(len(source), size=8), 0]
                reached = free[~is_member[free]][:1]
                if not len(reached):  # nearly all of them are members
                    break
            else:
                drawn = self._drawn_neighbours(reached, round(most), random)
                reached = random.permutation(np.unique(drawn[~is_member[drawn]]))[:room]
            is_member[reached] = True
            room -= len(reached)
        return np.flatnonzero(is_member)

    def _drawn_neighbours(self, entities: Ids, most: int, random: np.random.Generator) -> Ids:
        """Returns random neighbours of each entity, some of them perhaps twice."""
        starts, degrees = self._starts[entities], np.diff(self._starts)[entities]
        counts = np.minimum(degrees, most)
        first, degree = np.repeat(starts, counts), np.repeat(degrees, counts)
        return self._neighbours[first + (random.random(len(first)) * degree).astype(np.int64)]

    def _facts_among(self, source: Ids, members: Ids) -> Ids:
        """Returns the facts between members."""
        is_member = np.zeros(self._num_entities, dtype=bool)
        is_member[members] = True
        return source[is_member[source[:, 0]] & is_member[source[:, 2]]]

    def _thinned(self, facts: Ids, random: np.random.Generator) -> Ids:
        """Leaves out a random part of the relations, and the last of the facts."""
        is_kept = random.random(self._num_relations) < _kept(random)
        facts = facts[is_kept[facts[:, 1]]]
        return facts[: min(MOST_FACTS, round(_kept(random) * len(facts)))]


def _sources(facts: Ids, adjacency: Adjacency) -> list[Ids]:
    """Returns the facts of each graph, which shares neither entities nor relations with others."""
    relation, relations = facts[:, 1], adjacency.num_relations
    root = connected_components(
        np.concatenate([relation, relation]),
        np.concatenate([facts[:, 0], facts[:, 2]]) + relations,
        relations + adjacency.num_entities,
    )[relation]
    order = np.argsort(root, kind="stable")
    return np.split(facts[order], np.flatnonzero(np.diff(root[order])) + 1)


def _split(facts: Ids, random: np.random.Generator) -> CarvedGraph:
    """Holds out facts to ask, and numbers entities and relations by the others."""
    is_asked = random.random(len(facts)) < _log_uniform(random, *ASKED)
    visible, asked = facts[~is_asked], facts[is_asked]
    entities, relations = np.unique(visible[:, [0, 2]]), np.unique(visible[:, 1])
    names = (entities, relations, entities)
    known = [np.isin(column, of) for column, of in zip(asked.T, names, strict=True)]
    asked = asked[np.logical_and.reduce(known)]

    def numbered(some: Ids) -> Tensor:
        columns = zip(some.T, names, strict=True)
        return torch.from_numpy(np.stack([np.searchsorted(of, c) for c, of in columns], axis=1))

    return CarvedGraph(numbered(visible), numbered(asked), entities, relations)


def _log_uniform(random: np.random.Generator, low: int | float, high: int | float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def _kept(random: np.random.Generator) -> float:
    """Returns a fraction to keep: in half of all cases everything."""
    draw = random.uniform(2 * KEPT - 1, 1.0)
    return 1.0 if draw < KEPT else draw
