from collections.abc import Callable
from dataclasses import replace

import pytest

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError
from knowformer.explanation.check.benchmark import choose_facts
from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
from knowformer.graph.inverse import with_inverse_facts

Measure = Callable[..., FaithfulnessReport]


def test_facts_are_drawn_in_both_directions_and_none_twice(ring: Dataset) -> None:
    facts, num_relations = ring.test.facts, len(ring.relations)
    directed = {tuple(fact) for fact in with_inverse_facts(facts, num_relations).tolist()}
    everything = choose_facts(facts, num_relations, 1000, seed=0).tolist()
    assert len(everything) == len(directed) == 2 * len(facts)
    assert {tuple(fact) for fact in everything} == directed
    assert choose_facts(facts, num_relations, 3, seed=0).tolist() == everything[:3]
    assert choose_facts(facts, num_relations, 1000, seed=1).tolist() != everything


def test_measuring_twice_gives_the_same_curves_and_another_seed_other_facts(
    measure: Measure,
) -> None:
    once = measure(1)
    assert measure(1).curves == once.curves
    assert measure(1, seed=1).curves != once.curves


def test_no_more_is_explained_than_there_is(ring: Dataset, measure: Measure) -> None:
    seen: list[tuple[int, int]] = []
    few = replace(ring, test=replace(ring.test, facts=ring.test.facts[:1]))

    def note(done: int, of: int) -> None:
        seen.append((done, of))

    report = measure(1000, dataset=few, progress=note, command="typed")
    assert (report.num_predictions, report.command) == (2, "typed")
    assert seen == [(1, 2), (2, 2)]


def test_at_least_one_prediction_is_asked_for(measure: Measure) -> None:
    with pytest.raises(ConfigError, match="positive number of predictions, got 0"):
        measure(0)
