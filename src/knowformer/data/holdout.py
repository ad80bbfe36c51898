"""Validation apart from training: on entities that it never sees, or relations that it hardly sees.

Validation facts of an inductive data set are asked on the training graph, whose structure a model
may have learned by heart; its test facts are asked on another graph, which may also be full of
relations that were rare in training. What is set apart here tells from the training facts alone how
well a model does there.
"""

import math

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.data.dataset import Split, TrainingSplits
from knowformer.errors import DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.partition import cut_into_regions, facts_among
from knowformer.graph.vocabulary import Vocabulary

ASKED_SHARE = 0.1
"""Of the training facts set apart; validation facts are asked as well."""
LEFT_FACTS = 2
"""Training facts that a relation keeps when it is set apart."""
MANY_FACTS = 50
"""Relations with fewer are not set apart: they would tell too little."""


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
    is_asked = _draw(len(inside), generator)
    seen = inside[~is_asked]
    more = facts_among(_valid_on_training_graph(splits), apart, num_entities)
    asked = torch.cat([inside[is_asked], more])
    asked = asked[torch.isin(asked[:, 1], trained[:, 1])]  # others were never trained
    _check(trained, asked, "validation_region")
    return TrainingSplits(
        train=Split("train", _part(graph, rest, trained), trained, trained),
        valid=Split("valid", _part(graph, apart, seen), asked, torch.cat([seen, asked])),
    )


def set_relations_apart(
    splits: TrainingSplits, share: float, *, generator: torch.Generator
) -> TrainingSplits:
    """Returns splits whose validation asks for relations that are all but left out of training.

    Args:
        splits: what training sees; the validation graph stays as it is, but for facts asked for.
        share: of the relations with facts enough to tell.
        generator: chooses the relations and the facts to ask for.

    Raises:
        DataError: there is no such relation, or nothing left to train on.
    """
    graph, facts = splits.train.graph, splits.train.facts
    frequent = (torch.bincount(facts[:, 1]) >= MANY_FACTS).nonzero().squeeze(1)
    order = torch.randperm(len(frequent), generator=generator)
    apart = frequent[order[: math.ceil(share * len(frequent))]]
    is_left = ~torch.isin(facts[:, 1], apart)
    for relation in apart.tolist():
        is_left[(facts[:, 1] == relation).nonzero()[:LEFT_FACTS, 0]] = True
    is_asked = torch.zeros_like(is_left)
    is_asked[~is_left] = _draw(int((~is_left).sum()), generator)
    trained, seen = facts[is_left], facts[~is_asked]
    valid = _valid_on_training_graph(splits)
    asked = torch.cat([facts[is_asked], valid[torch.isin(valid[:, 1], apart)]])
    _check(trained, asked, "validation_relations")
    return TrainingSplits(
        train=Split("train", _with_facts(graph, trained), trained, trained),
        valid=Split("valid", _with_facts(graph, seen), asked, torch.cat([facts, valid])),
    )


def _valid_on_training_graph(splits: TrainingSplits) -> Int[Tensor, "n 3"]:
    """Returns the validation facts, or none if they have a graph and numbers of their own."""
    shared = splits.valid.graph.same_as(splits.train.graph)
    return splits.valid.facts if shared else splits.valid.facts[:0]


def _draw(number: int, generator: torch.Generator) -> Bool[Tensor, " n"]:
    """Returns True for the facts to ask for."""
    chosen = torch.zeros(number, dtype=torch.bool)
    order = torch.randperm(number, generator=generator)
    chosen[order[: math.ceil(ASKED_SHARE * number)]] = True
    return chosen


def _check(trained: Tensor, asked: Tensor, setting: str) -> None:
    if not len(trained) or not len(asked):
        raise DataError(
            "Expected facts on both sides when some are set apart for validation, got "
            f"{len(trained):,} to train on and {len(asked):,} to ask for. Set training.{setting} "
            "to another share, or leave it out."
        )


def _with_facts(graph: KnowledgeGraph, facts: Int[Tensor, "n 3"]) -> KnowledgeGraph:
    return KnowledgeGraph(graph.entities, graph.relations, facts)


def _part(
    graph: KnowledgeGraph, members: Int[Tensor, " v"], facts: Int[Tensor, "n 3"]
) -> KnowledgeGraph:
    names = (graph.entities.names[member] for member in members.tolist())
    return KnowledgeGraph(Vocabulary(names, kind="entity"), graph.relations, facts)
