"""Percentile bootstrap: how far a figure may be from that of other samples of the same kind."""

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
    return percentile_interval(means)


def bootstrap_counts(size: int, *, seed: int) -> npt.NDArray[np.float64]:
    """Returns how often each of ``size`` cases is in each resample, a resample a row.

    A row times a column of sums is the sum over the resample: for figures that are no means.
    """
    random = np.random.default_rng(derive_seed(seed, "bootstrap"))
    drawn = random.integers(size, size=(NUM_RESAMPLES, size))
    cells = (drawn + size * np.arange(NUM_RESAMPLES)[:, None]).ravel()
    counts = np.bincount(cells, minlength=NUM_RESAMPLES * size).astype(np.float64)
    return counts.reshape(NUM_RESAMPLES, size)


def percentile_interval(
    resampled: Sequence[float] | npt.NDArray[np.float64],
) -> tuple[float, float]:
    """Returns the interval that holds ``CONFIDENCE`` of what resamples gave."""
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return float(low), float(high)
