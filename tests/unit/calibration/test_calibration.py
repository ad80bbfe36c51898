"""Calibration: monotone, stored and read back, old files included."""

import json

import numpy as np
import pytest
from pydantic import ValidationError

from knowformer.calibration.calibration import (
    Calibration,
    Curve,
    Line,
    ProbabilityBasis,
    sigmoid,
)
from tests.unit.calibration.conftest import World


def test_a_higher_score_is_never_worth_less_whatever_the_relation(world: World):
    calibration = world.calibration(num_test_facts=len(world.test))
    scores = np.linspace(-6, 6, 200)
    log_odds = calibration.log_odds(scores, np.array(0.5), np.array(3), np.array(80.0))
    assert np.all(np.diff(log_odds) > 0)
    for relation in ("r0", "r1", "another"):
        for side in ("head", "tail"):
            probabilities = calibration.probabilities(log_odds, relation, side)
            assert np.all(np.diff(probabilities) >= 0)
            assert 0 <= probabilities.min() <= probabilities.max() <= 1


def test_a_calibration_is_the_same_when_made_again_and_when_read_back(world: World):
    first, again = (world.calibration(num_test_facts=100) for _ in range(2))
    assert first == again
    assert Calibration.model_validate_json(first.model_dump_json()) == first
    assert first.fitted_on.test_facts_among_candidates == 100
    assert set(first.log_loss) == {"pooled line", "pooled steps", "chosen"}
    assert first.log_loss["chosen"] < 1.05 * min(first.log_loss.values())


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


def test_a_line_moves_log_odds_and_one_of_before_is_still_a_curve(world: World):
    stored = world.calibration(num_test_facts=0).model_dump(mode="json", by_alias=True)
    del stored["lines"], stored["fitted_on"]["relations"]  # as format 1 had it
    curve = {"kind": "steps", "log_odds": [0.0], "probabilities": [0.25]}
    stored |= {"format_version": 1, "relations": {"r0": {"tail": curve}}}
    old, z = Calibration.model_validate(stored), np.array([-1.0, 2.0])
    assert old.probabilities(z, "r0", "tail").tolist() == [0.25, 0.25]
    assert np.array_equal(old.probabilities(z, "r0", "head"), old.pooled.apply(z))
    assert old.basis("r0", "tail") is None
    line = Line(offset=1.0, tilt=-0.5, center=-1.0)
    assert line.apply(sigmoid(z)) == pytest.approx(sigmoid(np.array([0.0, 1.5])))


def test_what_stands_behind_a_relation_is_counted(world: World):
    calibration = world.calibration(num_test_facts=0)
    behind = [calibration.basis(name, side) for name in ("r0", "r1") for side in ("head", "tail")]
    assert sum(one.facts for one in behind) == calibration.fitted_on.facts
    assert sum(one.questions for one in behind) == calibration.fitted_on.questions
    assert all(one.is_enough for one in behind)
    assert calibration.basis("another", "tail") == ProbabilityBasis(questions=0, facts=0)


def test_the_file_keeps_the_keys_that_earlier_runs_have(world: World):
    stored = world.calibration(num_test_facts=0).model_dump(mode="json", by_alias=True)
    assert stored["own"] == "sigmoid"
    assert set(stored["coefficients"]) == {
        *("score", "crowd", "none_seen", "log_num_seen", "constant")
    }
    assert Calibration.model_validate(json.loads(json.dumps(stored))).link == "sigmoid"
