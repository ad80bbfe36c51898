"""Fits: the coefficients and curves behind labels that are known."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from knowformer.calibration.calibration import Curve, sigmoid
from knowformer.calibration.fit import (
    _Labelled,
    fit_calibration,
    fit_logistic,
    pool_adjacent_violators,
)
from knowformer.data.dataset import Split
from knowformer.errors import DataError
from knowformer.evaluation.reliability import measure_calibration
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.scores import Scores
from tests.unit.calibration.conftest import NUM_RELATIONS, World


def test_forgetting_that_test_facts_are_among_the_candidates_makes_probabilities_too_low(
    world: World,
):
    right = world.calibration(num_test_facts=len(world.test))
    wrong = world.calibration(num_test_facts=0)
    errors = [
        measure_calibration(world, world.split("test"), one, seed=0).log_loss.after
        for one in (right, wrong)
    ]
    assert errors[0] < errors[1]
    candidate = (np.array([3.0]), np.array([1.0]), np.array([5]), np.array([80.0]))
    high, low = (
        one.probabilities(one.log_odds(*candidate), "r0", "tail") for one in (right, wrong)
    )
    assert high > low


def test_a_relation_that_differs_has_a_line_and_one_without_facts_stays_with_the_pool():
    class Scaled(World):
        def score(self, heads: Tensor, relations: Tensor) -> Scores:
            # The same facts behind scores on another scale for one relation.
            scale = torch.where(relations % NUM_RELATIONS == 1, 0.3, 1.0)
            return Scores.of_all(super().score(heads, relations).table * scale[:, None])

    scaled = Scaled(0)
    calibration = scaled.calibration(num_test_facts=len(scaled.test))
    lines = calibration.lines
    for side in ("head", "tail"):
        assert lines["r1"][side].tilt > lines["r0"][side].tilt + 0.3
    report = measure_calibration(scaled, scaled.split("test"), calibration, seed=0)
    pooled = calibration.model_copy(update={"lines": {}})
    without = measure_calibration(scaled, scaled.split("test"), pooled, seed=0)
    assert report.log_loss.after < 0.95 * without.log_loss.after

    scaled.valid = scaled.valid[scaled.valid[:, 1] == 0]
    scaled.train = scaled.train[scaled.train[:, 1] == 0]
    scaled.graph = KnowledgeGraph(scaled.graph.entities, scaled.graph.relations, scaled.train)
    alone = scaled.calibration(num_test_facts=0)
    odds = np.linspace(-6, 6, 5)
    assert np.array_equal(alone.probabilities(odds, "r1", "tail"), alone.pooled.apply(odds))


def test_scores_that_say_nothing_count_for_nothing():
    class Upside(World):
        def score(self, heads: Tensor, relations: Tensor) -> Scores:
            return Scores.of_all(-super().score(heads, relations).table)

    calibration = Upside(0).calibration(num_test_facts=0)
    assert calibration.coefficients["score"] == 0.0


def test_too_few_validation_facts_are_refused(world: World):
    valid = world.split("valid")
    few = Split("valid", valid.graph, valid.facts[:9], valid.known)
    with pytest.raises(DataError, match=r"at least 20 validation facts.* got 18"):
        fit_calibration(world, few, link="softmax", seed=0, num_test_facts=0)


@pytest.mark.parametrize("ceiling", [1.0, 0.5])
def test_a_logistic_fit_finds_the_coefficients_that_made_the_labels(ceiling: float):
    random = np.random.default_rng(0)
    columns = np.stack([random.normal(size=40_000), random.normal(size=40_000), np.ones(40_000)], 1)
    true = np.array([1.5, -0.7, -1.0])
    labels = random.random(40_000) < ceiling * sigmoid(columns @ true)
    found = fit_logistic(columns, labels, np.ones(40_000), ceiling)
    assert found == pytest.approx(true, abs=0.1)


def test_a_logistic_fit_stays_finite_where_labels_are_separable():
    columns = np.stack([np.array([-2.0, -1.0, 1.0, 2.0]), np.ones(4)], 1)
    found = fit_logistic(columns, np.array([False, False, True, True]), np.ones(4), 1.0)
    assert np.all(np.isfinite(found))
    assert found[0] > 1


@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(0, 1)), min_size=1, max_size=30))
@example([(0.109375, 1.175494351e-38), (1.25, 1.175494351e-38)])  # products differ, means do not
def test_pooling_gives_the_rising_means_that_are_nearest(points: list[tuple[float, float]]):
    weight, value = np.array(points).T
    blocks = pool_adjacent_violators(np.stack([weight, weight * value], 1))
    means = blocks[:, 1] / blocks[:, 0]
    assert np.all(np.diff(means) > 0)
    assert blocks.sum(0) == pytest.approx([weight.sum(), (weight * value).sum()])
    # The known closed form: the largest, over starts, of the smallest mean over ends.
    sums = np.concatenate([[0], np.cumsum(weight * value)])
    weights = np.concatenate([[0], np.cumsum(weight)])
    n = len(weight)
    best = [
        max(
            min((sums[j] - sums[i]) / (weights[j] - weights[i]) for j in range(at + 1, n + 1))
            for i in range(at + 1)
        )
        for at in range(n)
    ]
    ends = np.cumsum(blocks[:, 0])
    block_of = np.searchsorted(ends, np.cumsum(weight) - weight / 2)
    assert means[block_of] == pytest.approx(best, abs=1e-9)


def test_what_is_certain_stays_a_probability() -> None:
    """Whatever the share of test facts: rounding must not lift a probability above 1."""
    certain = Curve(kind="steps", log_odds=[0.0, 1.0, 2.0], probabilities=[0.3, 1.0, 1.0])
    for facts in range(1, 400):
        truth = _Labelled(certain, facts / (facts + 661)).of_truth()
        assert Curve.model_validate(truth.model_dump()).probabilities[-1] == pytest.approx(1.0)
