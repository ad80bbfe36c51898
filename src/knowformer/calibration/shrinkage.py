"""Lines of relations, drawn towards what all relations share.

A relation and side moves the pooled log-odds z of its candidates by a line:

    z + offset + tilt * (z - center)

Offset and tilt are fitted to the labels under a penalty, strength / 2 * (offset^2 + tilt^2). So a
relation with few facts stays where the pool is, and one with many goes where its facts are: the
mode of a hierarchical model whose prior has variance 1 / strength. ``calibration.fit`` chooses the
strength on questions that were left out.

Candidates of one relation with nearly the same log-odds are counted together. A fit then costs as
much for a million candidates as for a thousand, and few enough steps to be tried at many strengths.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from knowformer.calibration.calibration import sigmoid

LOWEST, HIGHEST = -16.0, 8.0  # log-odds of the cells; what lies beyond is counted in the last ones
CELLS = 96
STEPS = 50
NEAR = 1e-4  # in log-odds, between two steps: the fit is over
LARGEST_STEP = 1.0  # of an offset or a tilt, in log-odds
MIN_TILT = -0.9  # the line must rise: a higher score is never worth less
TINY = 1e-12

Column = Float[np.ndarray, " N"]
Grid = Float[np.ndarray, "G C"]
Groups = Float[np.ndarray, " G"]


@dataclass(frozen=True)
class Lines:
    """A line for each group, a relation and side."""

    offset: Groups
    tilt: Groups
    center: float

    def apply(self, log_odds: Column, group: Int[np.ndarray, " N"]) -> Column:
        """Returns the log-odds of candidates of these groups, from the pooled ones."""
        return log_odds + self.offset[group] + self.tilt[group] * (log_odds - self.center)


@dataclass(frozen=True)
class Counted:
    """Candidates by group and cell of log-odds."""

    log_odds: Grid  # their weighted mean
    weight: Grid
    true: Grid  # the weight of those that are labelled true

    @classmethod
    def of(
        cls,
        log_odds: Column,
        group: Int[np.ndarray, " N"],
        labels: Bool[np.ndarray, " N"],
        weights: Column,
        num_groups: int,
    ) -> "Counted":
        """Counts candidates."""
        log_odds = np.clip(log_odds, LOWEST, HIGHEST)
        width = (HIGHEST - LOWEST) / CELLS
        cell = np.minimum((log_odds - LOWEST) / width, CELLS - 1).astype(np.int64)

        def sums(of: Column) -> Grid:
            flat = np.bincount(group * CELLS + cell, of, minlength=num_groups * CELLS)
            return flat.reshape(num_groups, CELLS)

        weight = sums(weights)
        return cls(
            sums(weights * log_odds) / np.maximum(weight, TINY), weight, sums(weights * labels)
        )

    def center(self) -> float:
        """Returns the log-odds around which the labels say most."""
        p = sigmoid(self.log_odds)
        information = self.weight * p * (1 - p)
        return float(np.sum(information * self.log_odds) / max(np.sum(information), TINY))


def fit_lines(
    counted: Counted, ceiling: float, *, strength: float, start: Lines | None = None
) -> Lines:
    """Fits P(label) = ceiling * sigmoid(line of z) for every group, by Fisher scoring."""
    center = start.center if start else counted.center()
    x = counted.log_odds - center
    offset = start.offset if start else np.zeros(len(x))
    tilt = start.tilt if start else np.zeros(len(x))
    for _ in range(STEPS):
        p = sigmoid(counted.log_odds + offset[:, None] + tilt[:, None] * x)
        slope = (1 - p) / np.maximum(1 - ceiling * p, TINY)
        gap = (counted.true - counted.weight * ceiling * p) * slope
        information = counted.weight * ceiling * p * (1 - p) * slope
        by_offset = gap.sum(1) - strength * offset
        by_tilt = (gap * x).sum(1) - strength * tilt
        aa, bb = (information.sum(1) + strength, (information * x * x).sum(1) + strength)
        ab = (information * x).sum(1)
        determinant = aa * bb - ab * ab
        step_offset = (bb * by_offset - ab * by_tilt) / determinant
        step_tilt = (aa * by_tilt - ab * by_offset) / determinant
        new_offset = offset + np.clip(step_offset, -LARGEST_STEP, LARGEST_STEP)
        new_tilt = np.maximum(tilt + np.clip(step_tilt, -LARGEST_STEP, LARGEST_STEP), MIN_TILT)
        moved = max(np.max(np.abs(new_offset - offset)), np.max(np.abs(new_tilt - tilt)))
        offset, tilt = new_offset, new_tilt
        if moved < NEAR:
            break
    return Lines(offset, tilt, center)
