"""Calibration quality on a split: reliability bins, expected calibration error, log-loss, Brier."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict

from knowformer.calibration.calibration import Calibration, FittedOn
from knowformer.calibration.sample import CalibrationSample, ScoresQueries, sample_candidates
from knowformer.data.dataset import Split
from knowformer.graph.inverse import asked_relation
from knowformer.graph.vocabulary import Vocabulary

BINS = 15  # of equal width, as in Guo et al., 2017
SHOWN = 10  # candidates of a question that are measured: as many as are shown by default

Column = Float[np.ndarray, " N"]


class BeforeAfter(BaseModel):
    """A figure of the probabilities that the link function gives, and of the calibrated ones."""

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
    """Measures probabilities on a split that they were not fitted on.

    Queries are sampled as in fitting; candidates are those that are neither facts of the graph
    nor known from another split.
    """
    sample = sample_candidates(scorer, split, link=calibration.link, seed=seed, progress=progress)
    sample = sample[sample.place < SHOWN]
    after = _calibrated(sample, calibration, split.graph.relations)
    best = sample.place == 0

    def both(figure: Callable[[Column, CalibrationSample], float]) -> BeforeAfter:
        return BeforeAfter(
            before=figure(sample.model_probability, sample), after=figure(after, sample)
        )

    return CalibrationReport(
        event=calibration.event,
        candidates=f"the {SHOWN} best of each question that are no known answers",
        num_questions=int(best.sum()),
        num_true=int(sample.is_true.sum()),
        expected_calibration_error=both(expected_calibration_error),
        expected_calibration_error_best=BeforeAfter(
            before=expected_calibration_error(sample.model_probability[best], sample[best]),
            after=expected_calibration_error(after[best], sample[best]),
        ),
        log_loss=both(_log_loss),
        brier=both(_brier),
        reliability_before=reliability(sample.model_probability, sample),
        reliability_after=reliability(after, sample),
        fitted_on=calibration.fitted_on,
    )


def reliability(probability: Column, sample: CalibrationSample) -> list[ReliabilityBin]:
    """Returns the bins that are not empty, from low to high."""
    number = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    total = sample.weight.sum()
    bins: list[ReliabilityBin] = []
    for at in (number == n for n in range(BINS)):
        weight = sample.weight[at]
        if len(weight):
            share_true = float(np.average(sample.is_true[at], weights=weight))
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


def wilson_interval(fraction: float, number: float, z: float = 1.96) -> tuple[float, float]:
    """Returns an interval of a fraction that was counted in ``number`` cases; never empty."""
    scale = 1 + z * z / number
    middle = (fraction + z * z / (2 * number)) / scale
    half = z * np.sqrt(fraction * (1 - fraction) / number + (z / (2 * number)) ** 2) / scale
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def expected_calibration_error(probability: Column, sample: CalibrationSample) -> float:
    """Returns the mean gap between probability and share of true candidates, over the bins."""
    return sum(
        abs(b.mean_probability - b.share_true) * b.share_of_candidates
        for b in reliability(probability, sample)
    )


def _calibrated(
    sample: CalibrationSample, calibration: Calibration, relations: Vocabulary
) -> Column:
    log_odds = calibration.log_odds(
        sample.score, sample.competitors, sample.num_seen, sample.num_candidates
    )
    probability = np.zeros(len(sample))
    for relation in np.unique(sample.relation).tolist():
        at = sample.relation == relation
        name, side = asked_relation(relation, relations)
        probability[at] = calibration.curve(name, side).apply(log_odds[at])
    return probability


def _log_loss(probability: Column, sample: CalibrationSample) -> float:
    p = np.clip(probability, 1e-12, 1 - 1e-12)
    loss = -np.where(sample.is_true, np.log(p), np.log1p(-p))
    return float(np.average(loss, weights=sample.weight))


def _brier(probability: Column, sample: CalibrationSample) -> float:
    return float(np.average((probability - sample.is_true) ** 2, weights=sample.weight))
