import pytest
import torch

from knowformer.errors import DataError
from knowformer.graph.dataset import Dataset, Split
from knowformer.graph.region_apart import set_region_apart


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def named(split: Split, facts: torch.Tensor) -> set[tuple[str, str, str]]:
    entities, relations = split.graph.entities.names, split.graph.relations.names
    return {(entities[h], relations[r], entities[t]) for h, r, t in facts.tolist()}


def test_the_two_graphs_have_no_entity_in_common(ring: Dataset) -> None:
    splits = set_region_apart(ring.for_training(), 0.3, generator=seeded())
    trained = set(splits.train.graph.entities)
    apart = set(splits.valid.graph.entities)
    assert not trained & apart
    assert trained | apart == set(ring.train.graph.entities)
    assert 0.1 < len(apart) / len(trained | apart) < 0.5


def test_facts_keep_their_names_and_none_is_both_seen_and_asked_for(ring: Dataset) -> None:
    whole = ring.for_training()
    splits = set_region_apart(whole, 0.3, generator=seeded())
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
    for share in (0.2, 0.5):
        splits = set_region_apart(ring.for_training(), share, generator=seeded())
        assert not test & named(splits.valid, splits.valid.known)
        assert not test & named(splits.train, splits.train.facts)


def test_relations_that_are_not_trained_are_not_asked_for(ring: Dataset) -> None:
    splits = set_region_apart(ring.for_training(), 0.4, generator=seeded(3))
    assert set(splits.valid.facts[:, 1].tolist()) <= set(splits.train.facts[:, 1].tolist())


def test_a_region_that_is_everything_is_refused(ring: Dataset) -> None:
    with pytest.raises(DataError, match="validation_region"):
        set_region_apart(ring.for_training(), 0.999, generator=seeded())
