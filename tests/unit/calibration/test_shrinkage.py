"""Lines of relations: where the facts are if there are many, where the pool is if there are few."""

import numpy as np
import pytest

from knowformer.calibration.calibration import sigmoid
from knowformer.calibration.shrinkage import MIN_TILT, Counted, Lines, fit_lines


def drawn(sizes: list[int], true: Lines, *, ceiling: float) -> Counted:
    """Candidates of groups whose labels follow these lines."""
    random = np.random.default_rng(0)
    group = np.repeat(np.arange(len(sizes)), sizes)
    z = random.normal(-1.0, 2.0, size=len(group))
    labels = random.random(len(group)) < ceiling * sigmoid(true.apply(z, group))
    return Counted.of(z, group, labels, np.ones(len(group)), len(sizes))


@pytest.mark.parametrize("ceiling", [1.0, 0.5])
def test_many_candidates_find_their_line_and_few_stay_with_the_pool(ceiling: float):
    true = Lines(np.array([1.0, -1.5, 1.0]), np.array([0.5, -0.4, 0.5]), center=0.0)
    found = fit_lines(drawn([40_000, 40_000, 20], true, ceiling=ceiling), ceiling, strength=10.0)
    z, many = np.linspace(-3, 3, 7), np.zeros(7, dtype=np.int64)
    for group in (0, 1):
        assert found.apply(z, many + group) == pytest.approx(true.apply(z, many + group), abs=0.25)
    assert abs(found.offset[2]) < 0.5
    assert abs(found.tilt[2]) < 0.25


def test_the_stronger_the_nearer_to_the_pool_and_a_warm_start_changes_nothing():
    true = Lines(np.array([2.0]), np.array([0.0]), center=0.0)
    counted = drawn([300], true, ceiling=1.0)
    offsets, lines = [], None
    for strength in (1e6, 100.0, 1.0):
        lines = fit_lines(counted, 1.0, strength=strength, start=lines)
        offsets.append(lines.offset[0])
        assert lines.offset == pytest.approx(fit_lines(counted, 1.0, strength=strength).offset)
    assert abs(offsets[0]) < 0.01 < offsets[1] < offsets[2]


def test_a_line_rises_even_where_the_facts_fall():
    upside = Lines(np.array([0.0]), np.array([-2.0]), center=0.0)
    found = fit_lines(drawn([5000], upside, ceiling=1.0), 1.0, strength=1.0)
    assert found.tilt[0] == MIN_TILT
    assert np.all(np.diff(found.apply(np.linspace(-9, 9, 50), np.zeros(50, dtype=int))) > 0)
