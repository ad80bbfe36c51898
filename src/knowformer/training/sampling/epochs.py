"""The batches of an epoch, each with the graph that it is trained on: the whole one or a region.

A training step costs as much as the graph is large, and a model that learns from structure alone
learns as well from a part of it. So a large graph may be cut into regions, anew for every epoch;
facts across a border are left out until the next cut.
"""

import math
from collections.abc import Iterator

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


class TrainingGraph:
    """What the queries of a batch see and are asked for; entities are numbered within it."""

    def __init__(
        self,
        adjacency: Adjacency,
        entity_keys: npt.NDArray[np.uint64],
        facts: Int[Tensor, "N 3"],
        *,
        targets: Targets,
        batch_size: int,
    ) -> None:
        self.adjacency = adjacency
        self.entity_keys = entity_keys
        num_relations = adjacency.num_relations
        self.known = KnownAnswers(
            facts, num_entities=adjacency.num_entities, num_relations=num_relations
        )
        self.batches = TrainingBatches(
            facts, num_relations=num_relations, batch_size=batch_size, targets=targets
        )


class TrainingPasses:
    """Passes over the training facts, batch by batch."""

    def __init__(
        self, split: Split, *, targets: Targets, batch_size: int, region_size: int | None
    ) -> None:
        self._split = split
        self._targets: Targets = targets
        self._batch_size = batch_size
        self._region_size = region_size
        self.whole = TrainingGraph(
            split.graph.adjacency,
            split.graph.entity_keys,
            split.facts,
            targets=targets,
            batch_size=batch_size,
        )

    @property
    def num_queries(self) -> int:
        """Returns how many queries the whole graph has; a cut one has slightly fewer."""
        return self.whole.batches.num_queries

    def __len__(self) -> int:
        return len(self.whole.batches)

    def work_done(self, step: int, num_steps: int, whole_graph_share: float) -> float:
        """Returns the share of a run's work that is over after a step.

        Args:
            step: steps done.
            num_steps: of the whole run.
            whole_graph_share: of the work, at the end, that is on the whole graph. There a step
                costs more than one on a region, by as much as the graph is larger.
        """
        share, cost = whole_graph_share, self.whole_graph_cost
        if cost <= 1.0 or not share:
            return step / num_steps
        on_whole = math.floor(num_steps * share / (cost * (1.0 - share) + share))
        in_regions = num_steps - on_whole
        if step <= in_regions and in_regions:
            return step * ((1.0 - share) if on_whole else 1.0) / in_regions
        return 1.0 - share * (num_steps - step) / on_whole

    def mean_cost(self, whole_graph_share: float) -> float:
        """Returns what a step of such a run costs on average; one on a region costs 1."""
        cost = self.whole_graph_cost
        return cost / (cost * (1.0 - whole_graph_share) + whole_graph_share)

    @property
    def whole_graph_cost(self) -> float:
        """Returns what a step on the whole graph costs, where one on a region costs 1."""
        num_entities = self.whole.adjacency.num_entities
        return max(1.0, num_entities / (self._region_size or num_entities))

    def epoch(
        self, generator: torch.Generator, *, in_regions: bool = True, skip: int = 0
    ) -> Iterator[tuple[TrainingGraph, QueryBatch]]:
        """Yields an epoch's batches without the first ``skip``, in an order of the generator's.

        With ``in_regions`` the graph is cut, if it is larger than a region.
        """
        graphs = self._regions(generator) if in_regions else [self.whole]
        if len(graphs) == 1:
            graph = graphs[0]
            yield from ((graph, batch) for batch in graph.batches.epoch(generator, skip=skip))
            return
        numbers = torch.arange(len(graphs))
        turns = numbers.repeat_interleave(torch.tensor([len(graph.batches) for graph in graphs]))
        turns = turns[torch.randperm(len(turns), generator=generator)]
        skipped = torch.bincount(turns[:skip], minlength=len(graphs)).tolist()
        # A generator for each, seeded at once: skipping must not change what others draw.
        seeds = torch.randint(2**62, (len(graphs),), generator=generator).tolist()
        left = [
            graph.batches.epoch(torch.Generator().manual_seed(seed), skip=done)
            for graph, seed, done in zip(graphs, seeds, skipped, strict=True)
        ]
        yield from ((graphs[turn], next(left[turn])) for turn in turns[skip:].tolist())

    def _regions(self, generator: torch.Generator) -> list[TrainingGraph]:
        whole = self.whole.adjacency
        if self._region_size is None or self._region_size >= whole.num_entities:
            return [self.whole]
        regions = cut_into_regions(whole, self._region_size, generator=generator)
        return [graph for region in regions if (graph := self._region(region)) is not None]

    def _region(self, members: Int[Tensor, " v"]) -> TrainingGraph | None:
        """Returns the graph among these entities, or None if it has no fact to ask for."""
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
