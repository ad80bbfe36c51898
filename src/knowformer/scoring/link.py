"""The link function: how a model's scores become its probabilities, before any calibration."""

from typing import Literal

import numpy as np
from jaxtyping import Float

LinkFunction = Literal["softmax", "sigmoid"]
"""``softmax``: one distribution over a query's entities; ``sigmoid``: each entity by itself. It is
a property of the trained model: the loss decides it, and the run stores it with the weights."""


def log_probabilities(
    scores: Float[np.ndarray, "..."], log_total: Float[np.ndarray, "..."], link: LinkFunction
) -> Float[np.ndarray, "..."]:
    """Returns the logarithms of the model's probabilities.

    Unlike scores, these compare between relations; unlike probabilities, they do not end in ties
    at 0 and 1.

    Args:
        scores: of some candidates.
        log_total: of each candidate's query, log of the sum of exp(score) over all entities.
        link: the model's link function.
    """
    return scores - log_total if link == "softmax" else -np.logaddexp(0.0, -scores)
