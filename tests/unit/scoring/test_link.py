import numpy as np
import pytest
import torch

from knowformer.scoring.link import log_probabilities

SCORES = torch.tensor([[3.0, -2.0, 0.0], [400.0, 0.0, -400.0]], dtype=torch.double)


def test_link_functions_are_those_of_torch_without_overflow():
    total = SCORES.logsumexp(1, keepdim=True).numpy()
    softmax = log_probabilities(SCORES.numpy(), total, "softmax")
    assert softmax == pytest.approx(SCORES.log_softmax(1).numpy())
    sigmoid = log_probabilities(SCORES.numpy(), total, "sigmoid")
    assert sigmoid == pytest.approx(torch.nn.functional.logsigmoid(SCORES).numpy())
    assert np.isfinite(softmax).all()
    assert np.isfinite(sigmoid).all()
