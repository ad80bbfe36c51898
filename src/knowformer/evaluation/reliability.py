"""Calibration quality on a split, first of all where probabilities are acted on.

Nearly all candidates are false and have a probability near zero, so a figure over all of them says
how well the lowest bin does. What someone acts on is a candidate that is worth a look, or the best
one of a question: ``Agreement`` says how well probabilities hold there. The expected calibration
error over all, log-loss and Brier score stand beside.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import BaseModel, ConfigDict

from knowformer.calibration.calibration import Calibration, FittedOn
from knowformer.calibration.fit import ACTED_ON
from knowformer.calibration.sample import CalibrationSample, ScoresQueries, sample_candidates
from knowformer.data.dataset import Split
from knowformer.evaluation.bootstrap import bootstrap_counts, percentile_interval
from knowformer.graph.inverse import asked_relation
from knowformer.graph.vocabulary import Vocabulary

BINS = 15  # of equal width, as in Guo et al., 2017
SHOWN = 10  # candidates of a question that are measured: as many as are shown by default
ENOUGH = 100.0  # equal candidates, below which a share of a half is known to worse than a tenth

Column = Float[np.ndarray, " N"]
Mask = Bool[np.ndarray, " N"]


class BeforeAfter(BaseModel):
    """A figure of the probabilities that the link function gives, and of the calibrated ones."""

    model_config = ConfigDict(frozen=True)

    before: float
    after: float


class Agreement(BaseModel):
    """Mean probability and share of true ones among some candidates.

    Intervals hold 95 % of what a bootstrap over questions gives. An expected calibration error is
    never below zero and adds up the chance differences of its bins, so of few candidates it is
    above zero even where every probability is right.
    """

    model_config = ConfigDict(frozen=True)

    num_candidates: int
    num_questions: int
    effective_candidates: float
    """Candidates of equal weight that tell as much (Kish); the sample weighs its questions."""
    is_enough: bool
    """False: there are too few to tell, and nothing below is given."""
    expected_calibration_error: float | None = None
    error_low: float | None = None
    error_high: float | None = None
    mean_probability: float | None = None
    share_true: float | None = None
    share_low: float | None = None
    share_high: float | None = None

    def in_words(self) -> str:
        """Returns the agreement as a phrase."""
        if self.share_low is None or self.share_high is None:
            return f"too few candidates to tell ({self.num_candidates:,})"
        return (
            f"{self.mean_probability:.3f} on average, a share of {self.share_true:.3f} is true "
            f"({self.share_low:.3f} to {self.share_high:.3f}); {self.num_candidates:,} "
            f"candidates, calibration error {self.expected_calibration_error:.3f}"
        )


class AgreementBeforeAfter(BaseModel):
    """Of the probabilities that the link function gives, and of the calibrated ones.

    Candidates are those that the probabilities in question put there.
    """

    model_config = ConfigDict(frozen=True)

    before: Agreement
    after: Agreement


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
    above: AgreementBeforeAfter | None = None
    """Of candidates with a probability above ``above_probability``; None in older reports."""
    above_probability: float = ACTED_ON
    best: AgreementBeforeAfter | None = None
    """Of the single best candidate of each question; None in older reports."""
    expected_calibration_error: BeforeAfter
    """Over all candidates, which those of a probability near zero decide."""
    expected_calibration_error_best: BeforeAfter
    """Of the single best candidate of each question."""
    log_loss: BeforeAfter
    brier: BeforeAfter
    reliability_before: list[ReliabilityBin]
    reliability_after: list[ReliabilityBin]
    fitted_on: FittedOn

    def headline(self, probabilities: Literal["before", "after"] = "after") -> list[str]:
        """Returns how well probabilities hold where they matter, as phrases."""
        named = {
            f"probabilities above {self.above_probability:g}": self.above,
            "probabilities of each question's best answer": self.best,
        }
        return [
            f"{name}: {(of.before if probabilities == 'before' else of.after).in_words()}"
            for name, of in named.items()
            if of is not None
        ]


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
    return measure_sample(sample, split, calibration, seed=seed)


def measure_sample(
    sample: CalibrationSample, split: Split, calibration: Calibration, *, seed: int
) -> CalibrationReport:
    """Measures probabilities on candidates of a split that are scored already."""
    sample = sample[sample.place < SHOWN]
    after = _calibrated(sample, calibration, split.graph.relations)
    best = sample.place == 0
    columns = {"before": sample.model_probability, "after": after}

    def both(figure: Callable[[Column, CalibrationSample], float]) -> BeforeAfter:
        return BeforeAfter(**{name: figure(p, sample) for name, p in columns.items()})

    def agreements(where: Callable[[Column], Mask]) -> AgreementBeforeAfter:
        found = {name: _agreement(p, sample, where(p), seed=seed) for name, p in columns.items()}
        return AgreementBeforeAfter(**found)

    return CalibrationReport(
        event=calibration.event,
        candidates=f"the {SHOWN} best of each question that are no known answers",
        num_questions=int(best.sum()),
        num_true=int(sample.is_true.sum()),
        above=agreements(lambda p: p > ACTED_ON),
        best=agreements(lambda _: best),
        expected_calibration_error=both(expected_calibration_error),
        expected_calibration_error_best=both(
            lambda p, of: expected_calibration_error(p[best], of[best])
        ),
        log_loss=both(_log_loss),
        brier=both(_brier),
        reliability_before=reliability(sample.model_probability, sample),
        reliability_after=reliability(after, sample),
        fitted_on=calibration.fitted_on,
    )


def _agreement(
    probability: Column, sample: CalibrationSample, where: Mask, *, seed: int
) -> Agreement:
    """Measures how well some of the candidates keep their probabilities."""
    p, rows = probability[where], sample[where]
    weight = rows.weight
    questions, row_question = np.unique(rows.query, return_inverse=True)
    effective = float(weight.sum() ** 2 / max((weight**2).sum(), 1e-300))
    counted = Agreement(
        num_candidates=len(rows),
        num_questions=len(questions),
        effective_candidates=effective,
        is_enough=effective >= ENOUGH,
    )
    if not counted.is_enough:
        return counted
    cells, shape = row_question * BINS + _bin_of(p), (len(questions), BINS)
    weights, expected, true = (
        np.bincount(cells, of, minlength=len(questions) * BINS).reshape(shape)
        for of in (weight, weight * p, weight * rows.is_true)
    )
    counts = bootstrap_counts(len(questions), seed=seed)
    resampled = [counts @ of for of in (weights, expected, true)]
    errors = np.abs(resampled[1] - resampled[2]).sum(1) / resampled[0].sum(1)
    shares = resampled[2].sum(1) / resampled[0].sum(1)
    error_low, error_high = percentile_interval(errors)
    share_low, share_high = percentile_interval(shares)
    return counted.model_copy(
        update={
            "expected_calibration_error": expected_calibration_error(p, rows),
            "error_low": error_low,
            "error_high": error_high,
            "mean_probability": float(np.average(p, weights=weight)),
            "share_true": float(np.average(rows.is_true, weights=weight)),
            "share_low": share_low,
            "share_high": share_high,
        }
    )


def _bin_of(probability: Column) -> Int[np.ndarray, " N"]:
    return np.minimum((probability * BINS).astype(np.int64), BINS - 1)


def reliability(probability: Column, sample: CalibrationSample) -> list[ReliabilityBin]:
    """Returns the bins that are not empty, from low to high."""
    number = _bin_of(probability)
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
        probability[at] = calibration.probabilities(log_odds[at], name, side)
    return probability


def _log_loss(probability: Column, sample: CalibrationSample) -> float:
    p = np.clip(probability, 1e-12, 1 - 1e-12)
    loss = -np.where(sample.is_true, np.log(p), np.log1p(-p))
    return float(np.average(loss, weights=sample.weight))


def _brier(probability: Column, sample: CalibrationSample) -> float:
    return float(np.average((probability - sample.is_true) ** 2, weights=sample.weight))
