"""Calibrator: the link function without a calibration, the relation's curve with one."""

import numpy as np
import pytest
import torch

from knowformer.calibration.calibration import Calibration, Curve, FittedOn
from knowformer.calibration.calibrator import Calibrator, Probabilities
from knowformer.calibration.features import query_features
from knowformer.graph.vocabulary import Vocabulary
from knowformer.queries.scores import Scores

RELATIONS = Vocabulary(["r", "s"], kind="relation")
SCORES = torch.tensor([[2.0, -1.0, 0.5], [0.0, 1.0, -torch.inf]])
FEATURES = query_features(
    Scores.of_all(SCORES),
    torch.zeros(2, 3, dtype=torch.bool),
    torch.tensor([0, 2]),  # r for tails, r for heads
)


def constant(probability: float) -> Curve:
    return Curve(kind="steps", log_odds=[0.0], probabilities=[probability])


CALIBRATION = Calibration(
    link="softmax",
    coefficients=dict.fromkeys(("crowd", "none_seen", "log_num_seen", "constant"), 0.0)
    | {"score": 1.0},
    pooled=Curve(kind="line"),
    relations={"r": {"head": constant(0.25)}},
    log_loss={},
    fitted_on=FittedOn(
        facts=1, questions=1, candidates=1, sampled_from=1, test_facts_among_candidates=0, seed=0
    ),
)


def test_without_a_calibration_a_softmax_sums_to_one_and_a_sigmoid_looks_at_each_alone():
    softmax = Calibrator(None, "softmax", RELATIONS)
    assert softmax.kind == "model"
    values = softmax.probabilities(SCORES, FEATURES).values
    assert values.sum(1) == pytest.approx([1.0, 1.0])
    assert values == pytest.approx(SCORES.softmax(1).numpy())
    sigmoid = Calibrator(None, "sigmoid", RELATIONS).probabilities(SCORES, FEATURES)
    assert sigmoid.values == pytest.approx(SCORES.sigmoid().numpy())


def test_a_relation_and_side_has_its_curve_and_the_others_share_one():
    calibrator = Calibrator(CALIBRATION, "softmax", RELATIONS)
    assert calibrator.kind == "calibrated"
    tails, heads = calibrator.probabilities(SCORES, FEATURES).values
    log_odds = SCORES[0].double().numpy() - np.log(3)
    assert tails == pytest.approx(1 / (1 + np.exp(-log_odds)))
    assert heads.tolist() == [0.25] * 3


@pytest.mark.parametrize("calibration", [None, CALIBRATION])
def test_a_candidate_that_is_left_out_gets_nothing(calibration: Calibration | None):
    features = query_features(Scores.of_all(SCORES), torch.zeros(2, 3).bool(), torch.tensor([0, 1]))
    probabilities = Calibrator(calibration, "softmax", RELATIONS).probabilities(SCORES, features)
    assert probabilities.values[1, 2] == 0.0
    assert np.isfinite(probabilities.log_odds).all()


def test_equal_probabilities_are_ordered_by_their_log_odds():
    tied = Probabilities(np.array([0.1, 0.5, 0.5]), np.array([9.0, 1.0, 2.0]))
    assert tied.order().tolist() == [2, 1, 0]
    assert tied[np.array([True, False, True])].order().tolist() == [1, 0]


def test_other_probabilities_have_another_fingerprint():
    curve = CALIBRATION.model_copy(update={"pooled": constant(0.5)})
    prints = {
        Calibrator(calibration, link, RELATIONS).fingerprint
        for calibration, link in (
            *((None, "softmax"), (None, "sigmoid")),
            *((CALIBRATION, "softmax"), (curve, "softmax")),
        )
    }
    assert len(prints) == 4
