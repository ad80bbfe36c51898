"""Evidence: confidences as numbers that add up, exactly and in any order."""

import numpy as np
from jaxtyping import Float

GRAIN = 2.0**-40
PRIOR_MISSES = 5
"""Added to what every confidence is a share of: one of few cases is not to be trusted as much."""


def confidence(
    hits: Float[np.ndarray, " N"], cases: Float[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """Returns the share of cases that are hits, below one."""
    return np.minimum(hits, cases) / (cases + PRIOR_MISSES)


def evidence(confidences: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Returns -log(1 - confidence) in whole grains.

    Their sum says that not all of them are wrong, were they independent (noisy-or). Sums of whole
    numbers are exact, so what has the same evidence is a tie.
    """
    return np.round(-np.log1p(-confidences) / GRAIN)
