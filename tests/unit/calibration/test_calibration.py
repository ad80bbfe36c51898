"""Calibration against a world whose true probabilities are known."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from knowformer.calibration.calibration import Calibration, Curve, sigmoid
from knowformer.calibration.fit import (
    _Labelled,
    fit_calibration,
    fit_logistic,
    pool_adjacent_violators,
)
from knowformer.calibration.reliability import measure_calibration, wilson_interval
from knowformer.calibration.sample import sample_candidates
from knowformer.data.dataset import Split
from knowformer.errors import DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary

NUM_ENTITIES, NUM_RELATIONS = 90, 2


class World:
    """Facts drawn from sigmoid(2 * score - 4), split at random: 70, 15 and 15 in a hundred."""

    def __init__(self, seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        shape = (NUM_RELATIONS, NUM_ENTITIES, NUM_ENTITIES)
        self.table = torch.randn(shape, generator=random)
        is_true = torch.rand(shape, generator=random) < torch.sigmoid(2 * self.table - 4)
        facts = torch.nonzero(is_true)[:, [1, 0, 2]]
        facts = facts[torch.randperm(len(facts), generator=random)]
        first, second = int(0.7 * len(facts)), int(0.85 * len(facts))
        self.train, self.valid, self.test = facts[:first], facts[first:second], facts[second:]
        names = Vocabulary([f"e{n}" for n in range(NUM_ENTITIES)], kind="entity")
        relations = Vocabulary([f"r{n}" for n in range(NUM_RELATIONS)], kind="relation")
        self.graph = KnowledgeGraph(names, relations, self.train)

    def score(self, heads: Tensor, relations: Tensor) -> Tensor:
        both = torch.cat([self.table, self.table.transpose(1, 2)])
        return both[relations, heads]

    def split(self, name: str) -> Split:
        if name == "valid":  # as training sees it: test facts are not known
            return Split("valid", self.graph, self.valid, torch.cat([self.train, self.valid]))
        return Split("test", self.graph, self.test, torch.cat([self.train, self.valid, self.test]))

    def calibration(self, *, num_test_facts: int) -> Calibration:
        return fit_calibration(
            self, self.split("valid"), own="sigmoid", seed=0, num_test_facts=num_test_facts
        )


@pytest.fixture(scope="module")
def world() -> World:
    return World(0)


def test_probabilities_keep_their_word_on_facts_that_the_fit_never_saw(world: World):
    calibration = world.calibration(num_test_facts=len(world.test))
    report = measure_calibration(world, world.split("test"), calibration, seed=0)
    assert report.num_true > 100
    assert report.expected_calibration_error.after < 0.02
    assert report.expected_calibration_error.before > 0.2
    assert report.log_loss.after < report.log_loss.before
    shares = [b.share_of_candidates for b in report.reliability_after]
    assert sum(shares) == pytest.approx(1.0)


def test_most_intervals_of_a_well_calibrated_world_hold_their_probability(world: World):
    calibration = world.calibration(num_test_facts=len(world.test))
    bins = measure_calibration(world, world.split("test"), calibration, seed=0).reliability_after
    held = [b.low <= b.mean_probability <= b.high for b in bins]
    assert sum(held) >= 0.8 * len(held)
    assert all(0 <= b.low <= b.share_true <= b.high <= 1 for b in bins)


def test_an_interval_of_few_cases_is_wide_even_where_all_are_alike():
    assert wilson_interval(1.0, 1.0)[0] < 0.25
    assert wilson_interval(0.0, 1000.0)[1] < 0.005
    low, high = wilson_interval(0.5, 100.0)
    assert (low, high) == pytest.approx((0.404, 0.596), abs=0.001)  # Wilson, 1927


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
    odds = right.log_odds(np.array([3.0]), np.array([1.0]), np.array([5]), np.array([80.0]))
    assert right.pooled.apply(odds) > wrong.pooled.apply(odds)


def test_a_relation_with_one_question_shares_the_pooled_curve():
    world = World(0)
    everyone = torch.arange(NUM_ENTITIES)
    to_one = torch.stack([everyone, torch.ones_like(everyone), torch.zeros_like(everyone)], 1)
    world.valid = torch.cat([world.valid[world.valid[:, 1] == 0], to_one[: NUM_ENTITIES - 10]])
    world.train = torch.cat([world.train[world.train[:, 1] == 0], to_one[NUM_ENTITIES - 10 :]])
    world.graph = KnowledgeGraph(world.graph.entities, world.graph.relations, world.train)
    calibration = world.calibration(num_test_facts=0)
    assert "head" not in calibration.relations.get("r1", {})
    assert calibration.curve("r1", "head") == calibration.pooled


def test_a_higher_score_is_never_worth_less_whatever_the_relation(world: World):
    calibration = world.calibration(num_test_facts=len(world.test))
    scores = np.linspace(-6, 6, 200)
    log_odds = calibration.log_odds(scores, np.array(0.5), np.array(3), np.array(80.0))
    assert np.all(np.diff(log_odds) > 0)
    for relation in ("r0", "r1", "another"):
        for side in ("head", "tail"):
            probabilities = calibration.curve(relation, side).apply(log_odds)
            assert np.all(np.diff(probabilities) >= 0)
            assert 0 <= probabilities.min() <= probabilities.max() <= 1


def test_a_calibration_is_the_same_when_made_again_and_when_read_back(world: World):
    first, again = (world.calibration(num_test_facts=100) for _ in range(2))
    assert first == again
    assert Calibration.model_validate_json(first.model_dump_json()) == first
    assert first.fitted_on.test_facts_among_candidates == 100
    assert set(first.log_loss) == {"pooled line", "pooled steps", "chosen"}
    assert first.log_loss["chosen"] <= min(first.log_loss.values())


def test_scores_that_say_nothing_count_for_nothing():
    class Upside(World):
        def score(self, heads: Tensor, relations: Tensor) -> Tensor:
            return -super().score(heads, relations)

    calibration = Upside(0).calibration(num_test_facts=0)
    assert calibration.coefficients["score"] == 0.0


def test_too_few_validation_facts_are_refused(world: World):
    valid = world.split("valid")
    few = Split("valid", valid.graph, valid.facts[:9], valid.known)
    with pytest.raises(DataError, match=r"at least 20 validation facts.* got 18"):
        fit_calibration(world, few, own="softmax", seed=0, num_test_facts=0)


def test_known_facts_are_no_candidates_and_weights_stand_for_all(world: World):
    rows = sample_candidates(world, world.split("test"), own="softmax", seed=0, questions=40)
    asked = torch.cat([world.train, world.test])
    heads = {(h, r) for h, r, _ in asked.tolist()}
    tails = {(t, r) for _, r, t in asked.tolist()}
    assert rows.weight[rows.place == 0].sum() == pytest.approx(len(heads) + len(tails))
    assert len(np.unique(rows.question)) == 80
    known = torch.cat([world.train, world.valid])
    pairs = 2 * NUM_RELATIONS * NUM_ENTITIES**2 - 2 * len(known)
    assert rows.weight.sum() == pytest.approx(pairs, rel=0.1)  # nearly every entity is asked
    assert rows.is_true.sum() == rows.is_true[rows.weight < 100].sum() > 0


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


@pytest.mark.parametrize(
    "broken",
    [
        {"kind": "steps"},
        {"kind": "steps", "log_odds": [0.0, 1.0], "probabilities": [0.5]},
        {"kind": "steps", "log_odds": [0.0, 1.0], "probabilities": [0.5, 0.4]},
        {"kind": "steps", "log_odds": [1.0, 0.0], "probabilities": [0.4, 0.5]},
        {"kind": "steps", "log_odds": [0.0], "probabilities": [1.5]},
        {"kind": "line", "slope": -1.0},
        {"kind": "line", "shift": float("nan")},
    ],
)
def test_a_curve_that_falls_or_is_not_whole_is_refused(broken: dict[str, object]):
    with pytest.raises(ValidationError):
        Curve.model_validate(broken)


def test_what_is_certain_stays_a_probability() -> None:
    """Whatever the share of test facts: rounding must not lift a probability above 1."""
    certain = Curve(kind="steps", log_odds=[0.0, 1.0, 2.0], probabilities=[0.3, 1.0, 1.0])
    for facts in range(1, 400):
        truth = _Labelled(certain, facts / (facts + 661)).of_truth()
        assert Curve.model_validate(truth.model_dump()).probabilities[-1] == pytest.approx(1.0)
