"""Validation holdouts: facts on unseen entities or rare relations, taken from the training facts.

Validation facts of an inductive data set are asked on the training graph, whose structure a model
may have memorised, while its test facts are asked on another graph, which may also be full of
relations that were rare in training. A holdout estimates from the training facts alone how well a
model does there.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.data.dataset import Split, TrainingSplits
from knowformer.errors import DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.partition import cut_into_regions, facts_among
from knowformer.graph.vocabulary import Vocabulary
from knowformer.seeding import generator as seeded_generator

ASKED_FRACTION = 0.1
"""Of the held-out training facts; the others are the validation graph."""
REMAINING_FACTS = 2
"""Training facts that a held-out relation keeps."""
MIN_RELATION_FACTS = 50
"""Relations with fewer facts are not held out: their metrics would be too noisy."""


def hold_out(
    splits: TrainingSplits, *, entities: float = 0.0, relations: float = 0.0, seed: int
) -> TrainingSplits:
    """Returns the splits with the validation holdout that a run asks for, if any.

    Args:
        splits: all that training may see.
        entities: fraction of the entities to hold out (``training.validation_region``).
        relations: fraction of the frequent relations (``training.validation_relations``).
        seed: the run's root seed.

    Raises:
        DataError: nothing would be left to train on or to validate with.
    """
    if entities:
        draw = seeded_generator(seed, "validation_region")
        splits = hold_out_entities(splits, entities, generator=draw)
    if relations:
        draw = seeded_generator(seed, "validation_relations")
        splits = hold_out_relations(splits, relations, generator=draw)
    return splits


def sample_facts(split: Split, limit: int, *, generator: torch.Generator) -> Split:
    """Returns the split with a random sample of its facts if there are more than ``limit``."""
    if len(split.facts) <= limit:
        return split
    order = torch.randperm(len(split.facts), generator=generator)
    return replace(split, facts=split.facts[order[:limit].sort().values])


def hold_out_entities(
    splits: TrainingSplits, fraction: float, *, generator: torch.Generator
) -> TrainingSplits:
    """Returns splits whose validation graph shares no entity with the training graph.

    Facts between the two graphs are dropped.

    Args:
        splits: all that training may see.
        fraction: of the entities, for validation.
        generator: draws the entities and the facts to ask for.

    Raises:
        DataError: one of the two graphs has no fact.
    """
    graph = splits.train.graph
    num_entities = len(graph.entities)
    size = math.ceil(fraction * num_entities)
    partitions = cut_into_regions(graph.adjacency, size, generator=generator)
    # A partition that took in the leaves of a hub may be far larger than asked for.
    held_out = min(partitions, key=lambda members: abs(len(members) - size))
    remains = torch.ones(num_entities, dtype=torch.bool)
    remains[held_out] = False
    remaining = remains.nonzero().squeeze(1)

    trained = facts_among(splits.train.facts, remaining, num_entities)
    inside = facts_among(splits.train.facts, held_out, num_entities)
    is_asked = _draw(len(inside), generator)
    visible = inside[~is_asked]
    valid = facts_among(_valid_on_training_graph(splits), held_out, num_entities)
    asked = torch.cat([inside[is_asked], valid])
    asked = asked[torch.isin(asked[:, 1], trained[:, 1])]  # other relations were never trained
    _check(trained, asked, "validation_region")
    return TrainingSplits(
        train=Split("train", _induced_graph(graph, remaining, trained), trained, trained),
        valid=Split(
            "valid", _induced_graph(graph, held_out, visible), asked, torch.cat([visible, asked])
        ),
    )


def hold_out_relations(
    splits: TrainingSplits, fraction: float, *, generator: torch.Generator
) -> TrainingSplits:
    """Returns splits that validate on relations of which training has only a few facts.

    The validation graph keeps all training facts but those it asks for.

    Args:
        splits: all that training may see.
        fraction: of the frequent relations.
        generator: draws the relations and the facts to ask for.

    Raises:
        DataError: no relation is frequent, or nothing is left to train on.
    """
    graph, facts = splits.train.graph, splits.train.facts
    frequent = (torch.bincount(facts[:, 1]) >= MIN_RELATION_FACTS).nonzero().squeeze(1)
    order = torch.randperm(len(frequent), generator=generator)
    held_out = frequent[order[: math.ceil(fraction * len(frequent))]]
    is_trained = ~torch.isin(facts[:, 1], held_out)
    for relation in held_out.tolist():
        is_trained[(facts[:, 1] == relation).nonzero()[:REMAINING_FACTS, 0]] = True
    is_asked = torch.zeros_like(is_trained)
    is_asked[~is_trained] = _draw(int((~is_trained).sum()), generator)
    trained, visible = facts[is_trained], facts[~is_asked]
    valid = _valid_on_training_graph(splits)
    asked = torch.cat([facts[is_asked], valid[torch.isin(valid[:, 1], held_out)]])
    _check(trained, asked, "validation_relations")
    return TrainingSplits(
        train=Split("train", _with_facts(graph, trained), trained, trained),
        valid=Split("valid", _with_facts(graph, visible), asked, torch.cat([facts, valid])),
    )


def _valid_on_training_graph(splits: TrainingSplits) -> Int[Tensor, "n 3"]:
    """Returns the validation facts, or none if their ids are those of another graph."""
    shared = splits.valid.graph.same_as(splits.train.graph)
    return splits.valid.facts if shared else splits.valid.facts[:0]


def _draw(number: int, generator: torch.Generator) -> Bool[Tensor, " n"]:
    """Returns True at the random facts to ask for."""
    chosen = torch.zeros(number, dtype=torch.bool)
    order = torch.randperm(number, generator=generator)
    chosen[order[: math.ceil(ASKED_FRACTION * number)]] = True
    return chosen


def _check(trained: Tensor, asked: Tensor, setting: str) -> None:
    if not len(trained) or not len(asked):
        raise DataError(
            "Expected a validation holdout that leaves facts on both sides, got "
            f"{len(trained):,} to train on and {len(asked):,} to ask for. Set training.{setting} "
            "to another fraction, or leave it out."
        )


def _with_facts(graph: KnowledgeGraph, facts: Int[Tensor, "n 3"]) -> KnowledgeGraph:
    return KnowledgeGraph(graph.entities, graph.relations, facts)


def _induced_graph(
    graph: KnowledgeGraph, members: Int[Tensor, " v"], facts: Int[Tensor, "n 3"]
) -> KnowledgeGraph:
    names = map(graph.entities.name, members.tolist())
    return KnowledgeGraph(Vocabulary(names, kind="entity"), graph.relations, facts)
