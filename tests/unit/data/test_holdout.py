from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from knowformer.data.dataset import Dataset, Split, TrainingSplits
from knowformer.data.holdout import hold_out, hold_out_entities, hold_out_relations, sample_facts
from knowformer.errors import DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def named(split: Split, facts: torch.Tensor) -> set[tuple[str, str, str]]:
    entities, relations = split.graph.entities.names, split.graph.relations.names
    return {(entities[h], relations[r], entities[t]) for h, r, t in facts.tolist()}


def test_the_two_graphs_have_no_entity_in_common(ring: Dataset) -> None:
    splits = hold_out_entities(ring.for_training(), 0.3, generator=seeded())
    trained = set(splits.train.graph.entities)
    apart = set(splits.valid.graph.entities)
    assert not trained & apart
    assert trained | apart == set(ring.train.graph.entities)
    assert 0.1 < len(apart) / len(trained | apart) < 0.5


def test_facts_keep_their_names_and_none_is_both_seen_and_asked_for(ring: Dataset) -> None:
    whole = ring.for_training()
    splits = hold_out_entities(whole, 0.3, generator=seeded())
    allowed = named(whole.train, whole.train.facts)
    asked = named(splits.valid, splits.valid.facts)
    seen = named(splits.valid, splits.valid.graph.facts)
    assert named(splits.train, splits.train.facts) <= allowed
    assert seen <= allowed
    assert asked <= allowed | named(whole.valid, whole.valid.facts)
    assert asked
    assert not asked & seen
    assert asked | seen == named(splits.valid, splits.valid.known)


def test_no_test_fact_is_reached(ring: Dataset) -> None:
    test = named(ring.test, ring.test.facts) - named(ring.train, ring.train.facts)
    for fraction in (0.2, 0.5):
        splits = hold_out_entities(ring.for_training(), fraction, generator=seeded())
        assert not test & named(splits.valid, splits.valid.known)
        assert not test & named(splits.train, splits.train.facts)


def test_relations_that_are_not_trained_are_not_asked_for(ring: Dataset) -> None:
    splits = hold_out_entities(ring.for_training(), 0.4, generator=seeded(3))
    assert set(splits.valid.facts[:, 1].tolist()) <= set(splits.train.facts[:, 1].tolist())


def test_a_region_that_is_everything_is_refused(ring: Dataset) -> None:
    with pytest.raises(DataError, match="validation_region"):
        hold_out_entities(ring.for_training(), 0.999, generator=seeded())


def test_held_out_relations_keep_two_facts_and_are_what_is_asked_for(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    graph = random_graph(num_entities=40, num_relations=5, num_facts=600, seed=0)
    order = torch.randperm(len(graph.facts), generator=seeded())
    facts, valid = graph.facts[order[60:]], graph.facts[order[:60]]
    seen = KnowledgeGraph(graph.entities, graph.relations, facts)
    whole = TrainingSplits(
        train=Split("train", seen, facts, facts), valid=Split("valid", seen, valid, graph.facts)
    )
    splits = hold_out_relations(whole, 0.4, generator=seeded())
    counts = torch.bincount(splits.train.facts[:, 1], minlength=5)
    apart = set((counts == 2).nonzero().flatten().tolist())
    assert len(apart) == 2
    assert set(splits.valid.facts[:, 1].tolist()) == apart
    left = named(splits.train, splits.train.facts)
    asked = named(splits.valid, splits.valid.facts)
    visible = named(splits.valid, splits.valid.graph.facts)
    assert not asked & (left | visible)
    assert left <= visible <= named(whole.train, facts)
    assert asked | visible <= named(splits.valid, splits.valid.known)


def test_a_graph_without_frequent_relations_is_refused(ring: Dataset) -> None:
    with pytest.raises(DataError, match="validation_relations"):
        hold_out_relations(ring.for_training(), 1.0, generator=seeded())


def test_validation_facts_with_numbers_of_another_graph_are_left_out(ring: Dataset) -> None:
    whole = ring.for_training()
    entities = Vocabulary([f"other {name}" for name in whole.train.graph.entities], kind="entity")
    elsewhere = KnowledgeGraph(entities, ring.relations, whole.valid.graph.facts)
    splits = hold_out_entities(
        TrainingSplits(whole.train, replace(whole.valid, graph=elsewhere)),
        0.3,
        generator=seeded(),
    )
    asked = named(splits.valid, splits.valid.facts)
    assert asked <= named(whole.train, whole.train.facts)


def test_without_a_fraction_nothing_is_held_out(ring: Dataset) -> None:
    splits = ring.for_training()
    assert hold_out(splits, seed=0) is splits


def test_the_seed_decides_what_is_held_out(ring: Dataset) -> None:
    entities = [
        list(hold_out(ring.for_training(), entities=0.3, seed=seed).valid.graph.entities)
        for seed in (0, 0, 1)
    ]
    assert entities[0] == entities[1] != entities[2]


def test_a_sample_has_so_many_facts_in_their_order_and_the_same_filter(ring: Dataset) -> None:
    split = ring.train
    sample = sample_facts(split, 5, generator=seeded())
    positions = [split.facts.tolist().index(fact) for fact in sample.facts.tolist()]
    assert positions == sorted(set(positions))
    assert len(positions) == 5
    assert sample.known is split.known
    assert sample_facts(split, len(split.facts), generator=seeded()) is split
