"""Percentile bootstrap: how far a mean may be from that of other samples of the same kind."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from knowformer.seeding import derive_seed

CONFIDENCE = 0.95
NUM_RESAMPLES = 2_000


def bootstrap_interval(
    values: Sequence[float] | npt.NDArray[np.float64], *, seed: int
) -> tuple[float, float]:
    """Returns the interval that holds ``CONFIDENCE`` of the means of resampled values."""
    sample = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(derive_seed(seed, "bootstrap"))
    size = len(sample)
    means = [sample[random.integers(size, size=size)].mean() for _ in range(NUM_RESAMPLES)]
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)
