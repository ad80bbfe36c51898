"""Epoch iterator: the batches of an epoch, each with the graph it trains on.

The cost of a step grows with its graph, and a model that learns from structure alone learns as well
from a part of it. So a large graph may be partitioned, anew for every epoch (as in Cluster-GCN);
facts across partitions are left out until the next epoch. Or small graphs are carved out of it all
the time (``carving``), for a model that must not know the graph.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.partition import cut_into_regions, facts_among
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.query import QueryBatch
from knowformer.training.sampling.batches import Targets, TrainingBatches
from knowformer.training.sampling.carving import Carver
from knowformer.training.sampling.pairs import PairBatches

Asked = Targets | Literal["pairs"]

GRAPHS_AT_ONCE = 8  # carved ones, whose batches take turns
BATCHES_PER_GRAPH = 16  # of a carved one, before others take its place


class TrainingGraph:
    """The whole graph or a partition, with its queries; entities are numbered within it."""

    def __init__(
        self,
        adjacency: Adjacency,
        entity_keys: npt.NDArray[np.uint64],
        facts: Int[Tensor, "N 3"],
        *,
        targets: Asked,
        batch_size: int,
        known: KnownAnswers | None = None,
    ) -> None:
        self.adjacency = adjacency
        self.entity_keys = entity_keys
        num_relations = adjacency.num_relations
        sizes = {"num_entities": adjacency.num_entities, "num_relations": num_relations}
        self.known = known or KnownAnswers(facts, **sizes)
        self.batches = (
            PairBatches(
                facts,
                self.known,
                num_entities=adjacency.num_entities,
                num_relations=num_relations,
                batch_size=batch_size,
            )
            if targets == "pairs"
            else TrainingBatches(
                facts, num_relations=num_relations, batch_size=batch_size, targets=targets
            )
        )


class TrainingEpochs:
    """Iterates over the training facts, one epoch at a time."""

    def __init__(
        self,
        split: Split,
        *,
        targets: Asked,
        batch_size: int,
        partition_size: int | None = None,
        carved_size: int | None = None,
    ) -> None:
        """Indexes the whole graph.

        Args:
            split: the training split.
            targets: which answers a query asks for; or pairs, which it is asked to tell apart.
            batch_size: queries per batch.
            partition_size: entities per partition; None for the whole graph.
            carved_size: entities of a carved graph, at most; None for none.
        """
        self._split = split
        self._targets: Asked = targets
        self._batch_size = batch_size
        self._partition_size = partition_size
        self.whole = TrainingGraph(
            split.graph.adjacency,
            split.graph.entity_keys,
            split.facts,
            targets=targets,
            batch_size=batch_size,
            known=KnownAnswers.of_split(replace(split, known=split.facts)),
        )
        self._carver: Carver | None = None
        if carved_size is not None:
            self._carver = Carver(split.graph.adjacency, split.facts, size=carved_size)

    @property
    def num_queries(self) -> int:
        """Returns how many queries the whole graph has; its partitions have slightly fewer."""
        return self.whole.batches.num_queries

    def __len__(self) -> int:
        """Returns the steps of an epoch on the whole graph."""
        return len(self.whole.batches)

    @property
    def whole_graph_cost(self) -> float:
        """Returns the cost of a step on the whole graph relative to one on a partition."""
        num_entities = self.whole.adjacency.num_entities
        return max(1.0, num_entities / (self._partition_size or num_entities))

    def batches(
        self, generator: torch.Generator, *, partitioned: bool = True, skip: int = 0
    ) -> Iterator[tuple[TrainingGraph, QueryBatch]]:
        """Yields the batches of an epoch, each with its graph, in random order.

        Args:
            generator: draws partitions, order and targets.
            partitioned: whether to partition the graph, if it is larger than a partition.
            skip: leaves out this many batches; the others are the same as without.
        """
        if self._carver is not None:
            yield from self._carved_batches(self._carver, generator, skip)
            return
        graphs = self._partition(generator) if partitioned else [self.whole]
        if len(graphs) == 1:
            graph = graphs[0]
            yield from ((graph, batch) for batch in graph.batches.epoch(generator, skip=skip))
            return
        numbers = torch.arange(len(graphs))
        turns = numbers.repeat_interleave(torch.tensor([len(graph.batches) for graph in graphs]))
        turns = turns[torch.randperm(len(turns), generator=generator)]
        skipped = torch.bincount(turns[:skip], minlength=len(graphs)).tolist()
        # A generator each, all seeded now: skipping in one must not change what the others draw.
        seeds = torch.randint(2**62, (len(graphs),), generator=generator).tolist()
        iterators = [
            graph.batches.epoch(torch.Generator().manual_seed(seed), skip=done)
            for graph, seed, done in zip(graphs, seeds, skipped, strict=True)
        ]
        yield from ((graphs[turn], next(iterators[turn])) for turn in turns[skip:].tolist())

    def _carved_batches(
        self, carver: Carver, generator: torch.Generator, skip: int
    ) -> Iterator[tuple[TrainingGraph, QueryBatch]]:
        """Yields as many batches as an epoch on the whole graph has, each of a carved graph."""
        steps = GRAPHS_AT_ONCE * BATCHES_PER_GRAPH
        seeds = torch.randint(2**62, (-(-len(self) // steps),), generator=generator).tolist()
        for number in range(skip // steps, len(seeds)):
            random = torch.Generator().manual_seed(seeds[number])
            first, last = max(0, skip - number * steps), len(self) - number * steps
            yield from islice(self._carved_round(carver, random), first, last)

    def _carved_round(
        self, carver: Carver, generator: torch.Generator
    ) -> Iterator[tuple[TrainingGraph, QueryBatch]]:
        """Yields batches of a few carved graphs, in random order."""
        graphs = [self._carved_graph(carver, generator) for _ in range(GRAPHS_AT_ONCE)]
        seeds = torch.randint(2**62, (len(graphs),), generator=generator).tolist()
        iterators = [
            _endless(graph, torch.Generator().manual_seed(seed))
            for graph, seed in zip(graphs, seeds, strict=True)
        ]
        turns = torch.arange(len(graphs)).repeat(BATCHES_PER_GRAPH)
        turns = turns[torch.randperm(len(turns), generator=generator)]
        yield from ((graphs[turn], next(iterators[turn])) for turn in turns.tolist())

    def _carved_graph(self, carver: Carver, generator: torch.Generator) -> TrainingGraph:
        """Returns a carved graph, or all of it if it is too small to be carved."""
        carved = carver.carve(generator)
        if carved is None:
            return self.whole
        sizes = {"num_entities": len(carved.entities), "num_relations": len(carved.relations)}
        return TrainingGraph(
            Adjacency(carved.visible, **sizes),
            self.whole.entity_keys[carved.entities],
            carved.asked,
            targets=self._targets,
            batch_size=self._batch_size,
            known=KnownAnswers(torch.cat([carved.visible, carved.asked]), **sizes),
        )

    def _partition(self, generator: torch.Generator) -> list[TrainingGraph]:
        whole = self.whole.adjacency
        if self._partition_size is None or self._partition_size >= whole.num_entities:
            return [self.whole]
        partitions = cut_into_regions(whole, self._partition_size, generator=generator)
        graphs = (self._induced_graph(members) for members in partitions)
        return [graph for graph in graphs if graph is not None]

    def _induced_graph(self, members: Int[Tensor, " v"]) -> TrainingGraph | None:
        """Returns the graph induced by these entities, or None if it has no training fact."""
        split, whole = self._split, self.whole
        num_entities = whole.adjacency.num_entities
        facts = facts_among(split.facts, members, num_entities)
        if not len(facts):
            return None
        adjacency = Adjacency(
            facts_among(split.graph.facts, members, num_entities),
            num_entities=len(members),
            num_relations=whole.adjacency.num_relations,
        )
        return TrainingGraph(
            adjacency,
            whole.entity_keys[members.numpy()],
            facts,
            targets=self._targets,
            batch_size=self._batch_size,
        )


def _endless(graph: TrainingGraph, generator: torch.Generator) -> Iterator[QueryBatch]:
    """Yields batches of a graph, from its first query on again when all have been asked."""
    while True:
        yield from graph.batches.epoch(generator)
