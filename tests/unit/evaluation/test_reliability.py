"""Calibration quality in a world whose true probabilities are known."""

import pytest

from knowformer.calibration.calibration import Curve
from knowformer.data.dataset import Split
from knowformer.evaluation.reliability import measure_calibration, wilson_interval
from tests.unit.calibration.conftest import World


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
    for where in (report.above, report.best):
        assert where is not None
        held, own = where.after, where.before
        assert held.share_low < held.mean_probability < held.share_high
        assert held.expected_calibration_error < held.error_high < 0.12
        assert not own.share_low < own.mean_probability < own.share_high
    shares = [b.share_of_candidates for b in report.reliability_after]
    assert sum(shares) == pytest.approx(1.0)


def test_most_intervals_of_a_well_calibrated_world_hold_their_probability(world: World):
    calibration = world.calibration(num_test_facts=len(world.test))
    bins = measure_calibration(world, world.split("test"), calibration, seed=0).reliability_after
    held = [b.low <= b.mean_probability <= b.high for b in bins]
    assert sum(held) >= 0.8 * len(held)
    assert all(0 <= b.low <= b.share_true <= b.high <= 1 for b in bins)


def test_too_few_candidates_are_said_to_be_too_few_instead_of_measured(world: World):
    calibration = world.calibration(num_test_facts=len(world.test))
    test = world.split("test")
    few = Split("test", test.graph, test.facts[:3], test.known)
    timid = calibration.model_copy(update={"pooled": Curve(kind="line", shift=-2.5), "lines": {}})
    above = measure_calibration(world, few, timid, seed=0).above
    assert above is not None
    assert 0 < above.after.effective_candidates < 100
    assert above.after.expected_calibration_error is None
    assert above.after.in_words() == f"too few candidates to tell ({above.after.num_candidates})"


def test_an_interval_of_few_cases_is_wide_even_where_all_are_alike():
    assert wilson_interval(1.0, 1.0)[0] < 0.25
    assert wilson_interval(0.0, 1000.0)[1] < 0.005
    low, high = wilson_interval(0.5, 100.0)
    assert (low, high) == pytest.approx((0.404, 0.596), abs=0.001)  # Wilson, 1927
