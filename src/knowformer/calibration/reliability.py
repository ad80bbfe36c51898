"""How well probabilities keep their word: reliability and expected calibration error on a split."""

from collections.abc import Callable

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict

from knowformer.calibration.calibration import Calibration, FittedOn
from knowformer.calibration.sample import (
    Candidates,
    Floats,
    ScoresQueries,
    sample_candidates,
)
from knowformer.data.dataset import Split
from knowformer.graph.inverse import base_relation, is_inverse

BINS = 15  # of equal width, as in Guo et al., 2017
SHOWN = 10  # candidates of a question that are judged: as many as are shown by default


class BeforeAfter(BaseModel):
    """A figure of the model's own probabilities, and of the calibrated ones."""

    model_config = ConfigDict(frozen=True)

    before: float
    after: float


class ReliabilityBin(BaseModel):
    """Candidates whose probabilities lie close together."""

    model_config = ConfigDict(frozen=True)

    mean_probability: float
    share_true: float
    share_of_candidates: float
    low: float | None = None
    high: float | None = None
    """About where the share would lie with more candidates: Wilson's interval, 95 %. None: a report
    from before it was measured."""


class CalibrationReport(BaseModel):
    """Probabilities against what turned out true, over the best candidates of each question."""

    model_config = ConfigDict(frozen=True)

    event: str
    candidates: str
    num_questions: int
    num_true: int
    expected_calibration_error: BeforeAfter
    expected_calibration_error_best: BeforeAfter
    """Of the single best candidate of each question."""
    log_loss: BeforeAfter
    brier: BeforeAfter
    reliability_before: list[ReliabilityBin]
    reliability_after: list[ReliabilityBin]
    fitted_on: FittedOn


def measure_calibration(
    scorer: ScoresQueries,
    split: Split,
    calibration: Calibration,
    *,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> CalibrationReport:
    """Judges probabilities by a split that they were not fitted on.

    Questions are sampled as in fitting; candidates are those that are neither facts of the graph
    nor known from another split.
    """
    rows = sample_candidates(scorer, split, own=calibration.own, seed=seed, progress=progress)
    rows = rows[rows.place < SHOWN]
    after = _calibrated(rows, calibration, split.graph.relations.names)
    best = rows.place == 0

    def both(figure: Callable[[Floats, Candidates], float]) -> BeforeAfter:
        return BeforeAfter(before=figure(rows.own, rows), after=figure(after, rows))

    return CalibrationReport(
        event=calibration.event,
        candidates=f"the {SHOWN} best of each question that are no known answers",
        num_questions=int(best.sum()),
        num_true=int(rows.is_true.sum()),
        expected_calibration_error=both(expected_calibration_error),
        expected_calibration_error_best=BeforeAfter(
            before=expected_calibration_error(rows.own[best], rows[best]),
            after=expected_calibration_error(after[best], rows[best]),
        ),
        log_loss=both(_log_loss),
        brier=both(_brier),
        reliability_before=reliability(rows.own, rows),
        reliability_after=reliability(after, rows),
        fitted_on=calibration.fitted_on,
    )


def reliability(probability: Floats, rows: Candidates) -> list[ReliabilityBin]:
    """Returns the bins that are not empty, from low to high."""
    number = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    total = rows.weight.sum()
    bins: list[ReliabilityBin] = []
    for at in (number == n for n in range(BINS)):
        weight = rows.weight[at]
        if len(weight):
            share_true = float(np.average(rows.is_true[at], weights=weight))
            # Weighted candidates tell as much as this number of equal ones (Kish).
            low, high = wilson_interval(share_true, weight.sum() ** 2 / (weight**2).sum())
            bins.append(
                ReliabilityBin(
                    mean_probability=float(np.average(probability[at], weights=weight)),
                    share_true=share_true,
                    share_of_candidates=float(weight.sum() / total),
                    low=low,
                    high=high,
                )
            )
    return bins


def wilson_interval(share: float, number: float, z: float = 1.96) -> tuple[float, float]:
    """Returns an interval of a share that was counted in ``number`` cases; never empty."""
    scale = 1 + z * z / number
    middle = (share + z * z / (2 * number)) / scale
    half = z * np.sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2) / scale
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def expected_calibration_error(probability: Floats, rows: Candidates) -> float:
    """Returns the mean gap between probability and share of true candidates, over the bins."""
    return sum(
        abs(b.mean_probability - b.share_true) * b.share_of_candidates
        for b in reliability(probability, rows)
    )


def _calibrated(rows: Candidates, calibration: Calibration, names: tuple[str, ...]) -> Floats:
    log_odds = calibration.log_odds(rows.score, rows.crowd, rows.num_seen, rows.num_candidates)
    probability = np.zeros(len(rows))
    for relation in np.unique(rows.relation).tolist():
        at, number = rows.relation == relation, torch.tensor(relation)
        name = names[int(base_relation(number, len(names)))]
        side = "head" if bool(is_inverse(number, len(names))) else "tail"
        probability[at] = calibration.curve(name, side).apply(log_odds[at])
    return probability


def _log_loss(probability: Floats, rows: Candidates) -> float:
    p = np.clip(probability, 1e-12, 1 - 1e-12)
    loss = -np.where(rows.is_true, np.log(p), np.log1p(-p))
    return float(np.average(loss, weights=rows.weight))


def _brier(probability: Floats, rows: Candidates) -> float:
    return float(np.average((probability - rows.is_true) ** 2, weights=rows.weight))
