import numpy as np
import pytest

from knowformer.evaluation.baselines.evidence import GRAIN, PRIOR_MISSES, confidence, evidence


def test_a_confidence_is_a_share_that_few_cases_keep_low() -> None:
    shares = confidence(np.array([1.0, 100.0, 7.0]), np.array([1.0, 100.0, 5.0]))
    expected = [1 / (1 + PRIOR_MISSES), 100 / (100 + PRIOR_MISSES), 5 / (5 + PRIOR_MISSES)]
    assert shares.tolist() == expected


def test_evidence_adds_up_to_a_noisy_or_in_any_order() -> None:
    shares = np.array([0.1, 0.7, 0.3, 0.001])
    grains = evidence(shares)
    assert sum(grains) == sum(grains[::-1])
    assert 1 - np.exp(-sum(grains) * GRAIN) == pytest.approx(1 - np.prod(1 - shares))
