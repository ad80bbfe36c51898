"""Fit a Calibration to validation candidates; every choice is made by held-out log-loss.

The loss that chooses is that of the candidates whose probability is acted on: the best of each
question, and those that pooled curves give more than ``ACTED_ON``. All others are nearly certain to
be false, and so many that they would decide alone.

Where validation and test facts are of one graph, test facts are among the candidates, and which
they are must not be known here (decision 0006). They count as false although they are true. Only
their number is used: if validation facts are a random part c of all that is held out, then a true
candidate is labelled true with probability c (Elkan and Noto, 2008). So c times a probability is
fitted to the labels, and in the end test facts are taken out of the candidates in expectation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from knowformer.calibration.calibration import (
    COEFFICIENTS,
    TINY,
    Calibration,
    Curve,
    CurveKind,
    FittedOn,
    Line,
    ProbabilityBasis,
    feature_columns,
    log_odds_of,
    sigmoid,
)
from knowformer.calibration.sample import CalibrationSample, ScoresQueries, sample_candidates
from knowformer.calibration.shrinkage import Counted, Lines, fit_lines
from knowformer.data.dataset import Split
from knowformer.errors import DataError
from knowformer.graph.inverse import Side, asked_relation
from knowformer.graph.vocabulary import Vocabulary
from knowformer.scoring.link import LinkFunction

MIN_FACTS = 20  # true candidates without which nothing is fitted
FOLDS = 5
CURVES: tuple[CurveKind, ...] = ("line", "steps")
ACTED_ON = 0.1  # a probability above which a candidate is worth a look
# How hard relations are drawn to the pool, in facts: with as many of its own, a relation goes half
# of the way. From hard to weak, each fit starts from the one before.
STRENGTHS = (300.0, 100.0, 30.0, 10.0, 3.0)

Column = Float[np.ndarray, " N"]
Mask = Bool[np.ndarray, " N"]
Ids = Int[np.ndarray, " N"]


@dataclass(frozen=True)
class _Labelled:
    """A curve that gives the probability of the label; ``ceiling`` is c above."""

    curve: Curve
    ceiling: float

    def apply(self, log_odds: Column) -> Column:
        return self.ceiling * self.curve.apply(log_odds)

    def of_truth(self) -> Curve:
        """Returns the curve for candidates among which there are no test facts.

        With g = ceiling * p for the label, and test facts (1 - ceiling) * p of the candidates, what
        is left is g / (1 - (1 - ceiling) * p); in odds just the ceiling times those of p.
        """
        if self.curve.kind == "line":
            return self.curve.model_copy(update={"shift": self.curve.shift + np.log(self.ceiling)})
        p = np.array(self.curve.probabilities)
        # Rounding may lift what is certain a last place above 1.
        left = np.minimum(1.0, self.ceiling * p / (1 - (1 - self.ceiling) * p))
        return self.curve.model_copy(update={"probabilities": left.tolist()})


def fit_calibration(
    scorer: ScoresQueries,
    valid: Split,
    *,
    link: LinkFunction,
    seed: int,
    num_test_facts: int,
    progress: Callable[[int, int], None] | None = None,
    is_enough: Callable[[int], bool] | None = None,
) -> Calibration:
    """Fits a calibration to a split's facts, which the scorer's graph does not hold.

    Args:
        scorer: the model on the split's graph.
        valid: validation facts as training sees them: its known facts hold no test facts.
        link: the model's link function.
        seed: root of the sampling.
        num_test_facts: how many test facts the same graph lacks besides.
        progress: called with queries done and queries in all.
        is_enough: told how many queries are scored; True ends it, unless they are too few.

    Raises:
        DataError: there are too few validation facts.
    """
    if 2 * len(valid.facts) < MIN_FACTS:
        raise _too_few(2 * len(valid.facts))
    sample = sample_candidates(
        scorer, valid, link=link, seed=seed, progress=progress, is_enough=is_enough
    )
    if sample.is_true.sum() < MIN_FACTS:
        raise _too_few(int(sample.is_true.sum()))
    return fit_sample(sample, valid, link=link, seed=seed, num_test_facts=num_test_facts)


def fit_sample(
    sample: CalibrationSample, valid: Split, *, link: LinkFunction, seed: int, num_test_facts: int
) -> Calibration:
    """Fits a calibration to candidates of a split that are scored already."""
    names, ceiling = valid.graph.relations, labelled_share(valid, num_test_facts)
    relations, group = np.unique(sample.relation, return_inverse=True)
    choice, losses = _choose(sample, group, ceiling)
    coefficients = _fit_coefficients(sample, ceiling)
    log_odds = _log_odds(sample, coefficients)
    pooled = fit_curves(log_odds, sample, ceiling)[choice.curve]
    p = pooled.curve.apply(log_odds)
    lines = _fit_all_lines(p, sample, group, len(relations), ceiling).get(choice.strength)
    return Calibration(
        link=link,
        coefficients=dict(zip(COEFFICIENTS, coefficients.tolist(), strict=True)),
        pooled=pooled.of_truth(),
        lines={} if lines is None else _named(lines, relations, names, ceiling),
        log_loss=losses,
        fitted_on=FittedOn(
            facts=int(sample.is_true.sum()),
            questions=len(np.unique(sample.query)),
            candidates=len(sample),
            sampled_from=round(float(sample.weight[sample.place == 0].sum())),
            test_facts_among_candidates=num_test_facts,
            seed=seed,
            relations=_count_relations(sample, names),
        ),
    )


def labelled_share(valid: Split, num_test_facts: int) -> float:
    """Returns the share c of what is held out that is labelled true."""
    return len(valid.facts) / (len(valid.facts) + num_test_facts)


def _too_few(number: int) -> DataError:
    return DataError(
        f"Expected at least {MIN_FACTS} validation facts, both directions counted, to fit "
        f"probabilities on, got {number}. Hold more facts out for validation."
    )


@dataclass(frozen=True)
class _Choice:
    """What a calibration is made of: a kind of curve, and how hard relations are drawn to it."""

    curve: CurveKind
    strength: float | None
    """None: relations have no lines of their own."""

    def __str__(self) -> str:
        return f"pooled {self.curve}" + (f", strength {self.strength:g}" if self.strength else "")


def _choose(
    sample: CalibrationSample, group: Ids, ceiling: float
) -> tuple[_Choice, dict[str, float]]:
    """Returns the simplest choice that is not clearly worse than the best (decision 0011).

    Clearly is by more than a standard error, over questions, of the loss among candidates that are
    acted on. A line is simpler than steps, and relations nearer to the pool than further off.
    Also the held-out log-loss per candidate, over all: of pooled curves and of what was chosen.
    """
    held_out = _held_out(sample, group, ceiling)
    pooled = [held_out[_Choice(curve, None)] for curve in CURVES]
    acted_on = (sample.place == 0) | (np.max(pooled, axis=0) > ACTED_ON * ceiling)
    losses = {choice: _log_loss(labelled, sample) for choice, labelled in held_out.items()}
    best = min(losses, key=lambda choice: losses[choice][acted_on].sum())

    def is_close(choice: _Choice) -> bool:
        worse = np.bincount(sample.query, acted_on * (losses[choice] - losses[best]))
        return bool(worse.sum() <= np.sqrt(len(worse)) * worse.std())

    chosen = next(choice for choice in losses if is_close(choice))
    total = sample.weight.sum()
    shown = {str(c): float(losses[c].sum() / total) for c in losses if c.strength is None}
    return chosen, {**shown, "chosen": float(losses[chosen].sum() / total)}


def _held_out(sample: CalibrationSample, group: Ids, ceiling: float) -> dict[_Choice, Column]:
    """Returns P(label) of every candidate by every choice, under a fit without its question.

    The simpler choices come first.
    """
    found = {
        _Choice(curve, strength): np.zeros(len(sample))
        for curve in CURVES
        for strength in (None, *STRENGTHS)
    }
    fold, num_groups = sample.query % FOLDS, int(group.max()) + 1
    for number in range(FOLDS):
        fitted, out = fold != number, fold == number
        part = sample[fitted]
        log_odds = _log_odds(sample, _fit_coefficients(part, ceiling))
        for kind, fitted_curve in fit_curves(log_odds[fitted], part, ceiling).items():
            pooled = fitted_curve.curve.apply(log_odds)
            found[_Choice(kind, None)][out] = ceiling * pooled[out]
            z = log_odds_of(pooled[out])
            every = _fit_all_lines(pooled[fitted], part, group[fitted], num_groups, ceiling)
            for strength, lines in every.items():
                labelled = ceiling * sigmoid(lines.apply(z, group[out]))
                found[_Choice(kind, strength)][out] = labelled
    return found


def _fit_all_lines(
    pooled: Column, sample: CalibrationSample, group: Ids, num_groups: int, ceiling: float
) -> dict[float | None, Lines]:
    """Fits the lines of relations at every strength."""
    counted = Counted.of(log_odds_of(pooled), group, sample.is_true, sample.weight, num_groups)
    # Weights make the sample stand for the whole; what it tells is what it holds.
    facts_stand_for = float(np.mean(sample.weight[sample.is_true]))
    found: dict[float | None, Lines] = {}
    lines: Lines | None = None
    for strength in STRENGTHS:
        lines = fit_lines(counted, ceiling, strength=strength * facts_stand_for, start=lines)
        found[strength] = lines
    return found


def _named(
    lines: Lines, relations: Ids, names: Vocabulary, ceiling: float
) -> dict[str, dict[Side, Line]]:
    """Returns lines by name and side, for log-odds of truth: the label's, and log(ceiling) more."""
    found: dict[str, dict[Side, Line]] = {}
    for number, relation in enumerate(relations.tolist()):
        name, side = asked_relation(relation, names)
        found.setdefault(name, {})[side] = Line(
            offset=float(lines.offset[number]),
            tilt=float(lines.tilt[number]),
            center=lines.center + float(np.log(ceiling)),
        )
    return found


def _count_relations(
    sample: CalibrationSample, names: Vocabulary
) -> dict[str, dict[Side, ProbabilityBasis]]:
    found: dict[str, dict[Side, ProbabilityBasis]] = {}
    for relation in np.unique(sample.relation).tolist():
        at = sample.relation == relation
        name, side = asked_relation(relation, names)
        found.setdefault(name, {})[side] = ProbabilityBasis(
            questions=len(np.unique(sample.query[at])), facts=int(sample.is_true[at].sum())
        )
    return found


def _log_loss(labelled: Column, sample: CalibrationSample) -> Column:
    p = np.clip(labelled, TINY, 1 - TINY)
    return -sample.weight * np.where(sample.is_true, np.log(p), np.log1p(-p))


def _log_odds(sample: CalibrationSample, coefficients: Float[np.ndarray, " C"]) -> Column:
    columns = feature_columns(sample.score, sample.competitors, sample.num_seen)
    return columns @ coefficients - np.log(sample.num_candidates)


def _fit_coefficients(sample: CalibrationSample, ceiling: float) -> Float[np.ndarray, " C"]:
    columns = feature_columns(sample.score, sample.competitors, sample.num_seen)
    given = -np.log(sample.num_candidates)
    coefficients = fit_logistic(columns, sample.is_true, sample.weight, ceiling, given=given)
    if coefficients[0] > 0:
        return coefficients
    # A higher score must not be worth less. Where scores say nothing, they count for nothing.
    columns[:, 0] = 0.0
    coefficients = fit_logistic(columns, sample.is_true, sample.weight, ceiling, given=given)
    coefficients[0] = 0.0
    return coefficients


def fit_logistic(
    columns: Float[np.ndarray, "N C"],
    labels: Mask,
    weights: Column,
    ceiling: float,
    *,
    given: Column | float = 0.0,
    ridge: float = 1e-2,
) -> Float[np.ndarray, " C"]:
    """Fits P(label) = ceiling * sigmoid(columns @ coefficients + given) by Fisher scoring.

    The last column must be constant; the ridge keeps the others finite where labels are separable.
    """
    penalty = np.full(columns.shape[1], ridge)
    penalty[-1] = TINY
    base_rate = np.clip(np.average(labels, weights=weights) / ceiling, 1e-9, 1 - 1e-9)
    coefficients = np.zeros(columns.shape[1])
    coefficients[-1] = np.log(base_rate / (1 - base_rate)) - np.mean(given)

    def objective(at: Float[np.ndarray, " C"]) -> float:
        p = np.clip(ceiling * sigmoid(columns @ at + given), TINY, 1 - TINY)
        fit = (weights * np.where(labels, np.log(p), np.log1p(-p))).sum()
        return float(fit - 0.5 * (penalty * at**2).sum())

    value = objective(coefficients)
    for _ in range(100):
        p = np.clip(sigmoid(columns @ coefficients + given), TINY, 1 - TINY)
        slope = (1 - p) / (1 - ceiling * p)
        gradient = columns.T @ (weights * (labels - ceiling * p) * slope) - penalty * coefficients
        information = (columns.T * (weights * ceiling * p * (1 - p) * slope)) @ columns
        step = np.linalg.solve(information + np.diag(penalty), gradient)
        size = 1.0
        while size > 1e-6 and objective(coefficients + size * step) < value:
            size /= 2
        coefficients = coefficients + size * step
        new_value = objective(coefficients)
        if abs(new_value - value) <= 1e-10 * abs(value):
            break
        value = new_value
    return coefficients


def fit_curves(
    log_odds: Column, sample: CalibrationSample, ceiling: float
) -> dict[CurveKind, _Labelled]:
    """Fits a curve of each kind, the simpler one first."""
    line = _fit_line(log_odds, sample, ceiling)
    return {"line": line, "steps": _fit_steps(log_odds, sample, ceiling, line=line)}


def _fit_line(log_odds: Column, sample: CalibrationSample, ceiling: float) -> _Labelled:
    """Platt scaling: a line in log-odds."""
    columns = np.stack([log_odds, np.ones_like(log_odds)], 1)
    slope, shift = fit_logistic(columns, sample.is_true, sample.weight, ceiling, ridge=1.0)
    if slope <= 0:
        columns[:, 0] = 0.0
        slope, shift = 0.0, fit_logistic(columns, sample.is_true, sample.weight, ceiling)[1]
    return _Labelled(Curve(kind="line", slope=float(slope), shift=float(shift)), ceiling)


def _fit_steps(
    log_odds: Column, sample: CalibrationSample, ceiling: float, *, line: _Labelled
) -> _Labelled:
    """Isotonic regression, each step drawn towards the line as if by one more candidate."""
    order = np.argsort(log_odds, kind="stable")
    at, weight = log_odds[order], sample.weight[order]
    sums = np.stack(
        [weight, weight * sample.is_true[order], weight * at, weight * line.apply(at)], 1
    )
    # Equal log-odds are one point. Neighbours of equal means end in one block anyway: merged
    # first, few are left.
    points = _merge(sums, np.diff(at) != 0)
    blocks = pool_adjacent_violators(_merge(points, np.diff(points[:, 1] / points[:, 0]) != 0))
    total, true, where, expected = blocks.T
    center, first = np.unique(where / total, return_index=True)
    probability = ((true + expected / total) / (total + 1.0))[first]
    values = np.clip(np.maximum.accumulate(probability) / ceiling, 0.0, 1.0)
    steps = Curve(kind="steps", log_odds=center.tolist(), probabilities=values.tolist())
    return _Labelled(steps, ceiling)


def _merge(
    sums: Float[np.ndarray, "N S"], is_new: Bool[np.ndarray, " N-1"]
) -> Float[np.ndarray, "M S"]:
    """Adds up rows; ``is_new`` says of each row but the first whether it starts another one."""
    return np.add.reduceat(sums, np.flatnonzero(np.concatenate([[True], is_new])), axis=0)


def pool_adjacent_violators(sums: Float[np.ndarray, "N S"]) -> Float[np.ndarray, "M S"]:
    """Merges neighbouring rows until their means never fall.

    Args:
        sums: a row per point in order: weight above zero, weight times value, then anything else
            that adds up.
    """
    blocks: list[Float[np.ndarray, " S"]] = []
    for row in sums:
        block = row.copy()
        # The quotients themselves: rounded products may rise where the means are equal.
        while blocks and blocks[-1][1] / blocks[-1][0] >= block[1] / block[0]:
            block += blocks.pop()
        blocks.append(block)
    return np.array(blocks)
