"""Calibration: monotone, stored and read back, old files included."""

import json

import numpy as np
import pytest
from pydantic import ValidationError

from knowformer.calibration.calibration import Calibration, Curve
from tests.unit.calibration.conftest import World


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


def test_the_file_keeps_the_keys_that_earlier_runs_have(world: World):
    stored = world.calibration(num_test_facts=0).model_dump(mode="json", by_alias=True)
    assert stored["own"] == "sigmoid"
    assert set(stored["coefficients"]) == {
        *("score", "crowd", "none_seen", "log_num_seen", "constant")
    }
    assert Calibration.model_validate(json.loads(json.dumps(stored))).link == "sigmoid"
