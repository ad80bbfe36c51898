import numpy as np

from knowformer.evaluation.bootstrap import (
    bootstrap_counts,
    bootstrap_interval,
    percentile_interval,
)


def test_an_interval_holds_the_mean_narrows_with_more_values_and_repeats() -> None:
    random = np.random.default_rng(0)
    few, many = random.normal(1.0, 1.0, size=20), random.normal(1.0, 1.0, size=2000)
    low, high = bootstrap_interval(few, seed=0)
    lower, higher = bootstrap_interval(many, seed=0)
    assert low < few.mean() < high
    assert lower < 1.0 < higher
    assert higher - lower < (high - low) / 4
    assert bootstrap_interval(few.tolist(), seed=0) == (low, high)
    assert bootstrap_interval(few, seed=1) != (low, high)


def test_an_interval_stays_within_the_values_and_one_value_has_no_width() -> None:
    low, high = bootstrap_interval([0.0, 0.01, 0.02, 0.03, 0.1], seed=0)
    assert 0 <= low < 0.032 < high <= 0.1
    assert bootstrap_interval([0.5], seed=0) == (0.5, 0.5)


def test_counts_give_sums_over_resamples() -> None:
    values = np.random.default_rng(0).normal(1.0, 1.0, size=30)
    counts = bootstrap_counts(30, seed=0)
    assert np.all(counts.sum(1) == 30)
    found, expected = percentile_interval(counts @ values / 30), bootstrap_interval(values, seed=0)
    np.testing.assert_allclose(found, expected, atol=0.1)
