"""Validation on a graph of its own: a region that training never sees, with new entities.

Validation facts of an inductive data set are asked on the training graph, whose structure a model
may have learned by heart; its test facts are asked on another graph. A region that is set apart
tells from the training facts alone how well a model does on entities that it never saw.
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.errors import DataError
from knowformer.graph.dataset import Split, TrainingSplits
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.regions import cut_into_regions, facts_among
from knowformer.graph.vocabulary import Vocabulary

ASKED_SHARE = 0.1
"""Of the region's training facts; the region's validation facts are asked as well."""


def set_region_apart(
    splits: TrainingSplits, share: float, *, generator: torch.Generator
) -> TrainingSplits:
    """Returns splits whose validation graph has no entity in common with their training graph.

    Args:
        splits: what training sees; the facts between the two parts are left out.
        share: of the entities, for validation.
        generator: chooses the region and the facts to ask for.

    Raises:
        DataError: one of the two parts has no fact.
    """
    graph = splits.train.graph
    num_entities = len(graph.entities)
    size = math.ceil(share * num_entities)
    regions = cut_into_regions(graph.adjacency, size, generator=generator)
    # One that took in the leaves of a hub may be far larger than it should be.
    apart = min(regions, key=lambda region: abs(len(region) - size))
    kept = torch.ones(num_entities, dtype=torch.bool)
    kept[apart] = False
    rest = kept.nonzero().squeeze(1)

    trained = facts_among(splits.train.facts, rest, num_entities)
    inside = facts_among(splits.train.facts, apart, num_entities)
    order = torch.randperm(len(inside), generator=generator)
    num_asked = math.ceil(ASKED_SHARE * len(inside))
    seen = inside[order[num_asked:].sort().values]
    asked = torch.cat(
        [
            inside[order[:num_asked].sort().values],
            facts_among(splits.valid.facts, apart, num_entities),
        ]
    )
    asked = asked[torch.isin(asked[:, 1], trained[:, 1])]  # others were never trained
    if not len(trained) or not len(asked):
        raise DataError(
            "Expected facts on both sides when a region is set apart for validation, got "
            f"{len(trained):,} to train on and {len(asked):,} to ask for. Set "
            "training.validation_region to another share, or leave it out."
        )
    return TrainingSplits(
        train=Split("train", _part(graph, rest, trained), trained, trained),
        valid=Split("valid", _part(graph, apart, seen), asked, torch.cat([seen, asked])),
    )


def _part(
    graph: KnowledgeGraph, members: Int[Tensor, " v"], facts: Int[Tensor, "n 3"]
) -> KnowledgeGraph:
    names = (graph.entities.names[member] for member in members.tolist())
    return KnowledgeGraph(Vocabulary(names, kind="entity"), graph.relations, facts)
