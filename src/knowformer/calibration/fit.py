"""Fit a Calibration to validation candidates; every choice is made by held-out log-loss.

Where validation and test facts are of one graph, test facts are among the candidates, and which
they are must not be known here (decision 0006). They count as false although they are true. Only
their number is used: if validation facts are a random part c of all that is held out, then a true
candidate is labelled true with probability c (Elkan and Noto, 2008). So c times a probability is
fitted to the labels, and in the end test facts are taken out of the candidates in expectation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from knowformer.calibration.calibration import (
    COEFFICIENTS,
    Calibration,
    Curve,
    FittedOn,
    Side,
    question_columns,
    sigmoid,
)
from knowformer.calibration.sample import (
    Bools,
    Candidates,
    Floats,
    OwnProbability,
    ScoresQueries,
    sample_candidates,
)
from knowformer.data.dataset import Split
from knowformer.errors import DataError
from knowformer.graph.inverse import base_relation, is_inverse

MIN_FACTS = 20  # true candidates without which nothing is fitted
MIN_FACTS_OF_RELATION = 50  # without which a relation shares the pooled curve
FOLDS = 5
TINY = 1e-12


@dataclass(frozen=True)
class _Labelled:
    """A curve that gives the probability of the label; ``ceiling`` is c above."""

    curve: Curve
    ceiling: float

    def apply(self, log_odds: Floats) -> Floats:
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
    own: OwnProbability,
    seed: int,
    num_test_facts: int,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Fits a calibration to a split's facts, which the scorer's graph does not hold.

    Args:
        scorer: the model on the split's graph.
        valid: validation facts as training sees them: its known facts hold no test facts.
        own: how the model's own probabilities are made.
        seed: root of the sampling.
        num_test_facts: how many test facts the same graph lacks besides.
        progress: called with questions done and questions in all.

    Raises:
        DataError: there are too few validation facts.
    """
    if 2 * len(valid.facts) < MIN_FACTS:
        raise _too_few(2 * len(valid.facts))
    rows = sample_candidates(scorer, valid, own=own, seed=seed, progress=progress)
    if rows.is_true.sum() < MIN_FACTS:
        raise _too_few(int(rows.is_true.sum()))
    ceiling = len(valid.facts) / (len(valid.facts) + num_test_facts)
    chosen, losses = _choose_curves(rows, ceiling)
    coefficients = _fit_coefficients(rows, ceiling)
    log_odds = _log_odds(rows, coefficients)
    pooled = CURVES[chosen[None]](log_odds, rows, ceiling)
    relations: dict[str, dict[Side, Curve]] = {}
    for relation, kind in chosen.items():
        if relation is not None and kind != "pooled":
            at = rows.relation == relation
            curve = CURVES[kind](log_odds[at], rows[at], ceiling)
            name, side = _name_and_side(relation, valid)
            relations.setdefault(name, {})[side] = curve.of_truth()
    return Calibration(
        own=own,
        coefficients=dict(zip(COEFFICIENTS, coefficients.tolist(), strict=True)),
        pooled=pooled.of_truth(),
        relations=relations,
        log_loss=losses,
        fitted_on=FittedOn(
            facts=int(rows.is_true.sum()),
            questions=len(np.unique(rows.question)),
            candidates=len(rows),
            sampled_from=round(float(rows.weight[rows.place == 0].sum())),
            test_facts_among_candidates=num_test_facts,
            seed=seed,
        ),
    )


def _too_few(found: int) -> DataError:
    return DataError(
        f"Expected at least {MIN_FACTS} validation facts, both directions counted, to fit "
        f"probabilities on, got {found}. Hold more facts out for validation."
    )


def _name_and_side(relation: int, split: Split) -> tuple[str, Side]:
    names = split.graph.relations.names
    number = torch.tensor(relation)
    side: Side = "head" if bool(is_inverse(number, len(names))) else "tail"
    return names[int(base_relation(number, len(names)))], side


def _choose_curves(
    rows: Candidates, ceiling: float
) -> tuple[dict[int | None, str], dict[str, float]]:
    """Returns the kind of curve for each relation with enough facts, and for the rest (None).

    Also the held-out log-loss per candidate, of the pooled curves and of what was chosen.
    """
    relations, counts = np.unique(rows.relation[rows.is_true], return_counts=True)
    enough: list[int] = [
        relation
        for relation in relations[counts >= MIN_FACTS_OF_RELATION].tolist()
        # All answers of one question are judged together: one question leaves none to fit on.
        if len(np.unique(rows.question[rows.relation == relation] % FOLDS)) > 1
    ]
    groups = {None: np.ones(len(rows), dtype=bool)}
    groups |= {relation: rows.relation == relation for relation in enough}
    losses = _held_out_losses(rows, groups, ceiling)
    pooled_kind = min(CURVES, key=lambda kind: losses[None, kind].sum())
    chosen: dict[int | None, str] = {None: pooled_kind}
    final = losses[None, pooled_kind].copy()
    for relation in enough:
        at = groups[relation]
        options = {kind: losses[relation, kind][at] for kind in CURVES}
        options["pooled"] = losses[None, pooled_kind][at]
        chosen[relation] = min(options, key=lambda kind: options[kind].sum())
        final[at] = options[chosen[relation]]
    total = rows.weight.sum()
    summary = {f"pooled {kind}": float(losses[None, kind].sum() / total) for kind in CURVES}
    return chosen, {**summary, "chosen": float(final.sum() / total)}


def _held_out_losses(
    rows: Candidates, groups: dict[int | None, Bools], ceiling: float
) -> dict[tuple[int | None, str], Floats]:
    """Returns the loss of every candidate, by group and curve, under a fit without its question."""
    losses = {(group, kind): np.zeros(len(rows)) for group in groups for kind in CURVES}
    fold = rows.question % FOLDS
    for number in range(FOLDS):
        fitted, judged = fold != number, fold == number
        log_odds = _log_odds(rows, _fit_coefficients(rows[fitted], ceiling))
        for (group, kind), loss in losses.items():
            fit_at, judge_at = fitted & groups[group], judged & groups[group]
            curve = CURVES[kind](log_odds[fit_at], rows[fit_at], ceiling)
            loss[judge_at] = _log_loss(curve.apply(log_odds[judge_at]), rows[judge_at])
    return losses


def _log_loss(labelled: Floats, rows: Candidates) -> Floats:
    p = np.clip(labelled, TINY, 1 - TINY)
    return -rows.weight * np.where(rows.is_true, np.log(p), np.log1p(-p))


def _log_odds(rows: Candidates, coefficients: Floats) -> Floats:
    columns = question_columns(rows.score, rows.crowd, rows.num_seen)
    return columns @ coefficients - np.log(rows.num_candidates)


def _fit_coefficients(rows: Candidates, ceiling: float) -> Floats:
    columns = question_columns(rows.score, rows.crowd, rows.num_seen)
    given = -np.log(rows.num_candidates)
    coefficients = fit_logistic(columns, rows.is_true, rows.weight, ceiling, given=given)
    if coefficients[0] > 0:
        return coefficients
    # A higher score must not be worth less. Where scores say nothing, they count for nothing.
    columns[:, 0] = 0.0
    coefficients = fit_logistic(columns, rows.is_true, rows.weight, ceiling, given=given)
    coefficients[0] = 0.0
    return coefficients


def fit_logistic(
    columns: Floats,
    labels: Bools,
    weights: Floats,
    ceiling: float,
    *,
    given: Floats | float = 0.0,
    ridge: float = 1e-2,
) -> Floats:
    """Fits P(label) = ceiling * sigmoid(columns @ coefficients + given) by Fisher scoring.

    The last column must be constant; the ridge keeps the others finite where labels are separable.
    """
    penalty = np.full(columns.shape[1], ridge)
    penalty[-1] = TINY
    share = np.clip(np.average(labels, weights=weights) / ceiling, 1e-9, 1 - 1e-9)
    coefficients = np.zeros(columns.shape[1])
    coefficients[-1] = np.log(share / (1 - share)) - np.mean(given)

    def objective(at: Floats) -> float:
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


def _fit_line(log_odds: Floats, rows: Candidates, ceiling: float) -> _Labelled:
    """Platt scaling: a line in log-odds."""
    columns = np.stack([log_odds, np.ones_like(log_odds)], 1)
    slope, shift = fit_logistic(columns, rows.is_true, rows.weight, ceiling, ridge=1.0)
    if slope <= 0:
        columns[:, 0] = 0.0
        slope, shift = 0.0, fit_logistic(columns, rows.is_true, rows.weight, ceiling)[1]
    return _Labelled(Curve(kind="line", slope=float(slope), shift=float(shift)), ceiling)


def _fit_steps(log_odds: Floats, rows: Candidates, ceiling: float) -> _Labelled:
    """Isotonic regression, each step drawn towards the line as if by one more candidate."""
    line = _fit_line(log_odds, rows, ceiling)
    order = np.argsort(log_odds, kind="stable")
    at, weight = log_odds[order], rows.weight[order]
    sums = np.stack([weight, weight * rows.is_true[order], weight * at, weight * line.apply(at)], 1)
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


def _merge(sums: Floats, is_new: Bools) -> Floats:
    """Adds up rows; ``is_new`` says of each row but the first whether it starts another one."""
    return np.add.reduceat(sums, np.flatnonzero(np.concatenate([[True], is_new])), axis=0)


def pool_adjacent_violators(sums: Floats) -> Floats:
    """Merges neighbouring rows until their means never fall.

    Args:
        sums: a row per point in order: weight above zero, weight times value, then anything else
            that adds up.
    """
    blocks: list[Floats] = []
    for row in sums:
        block = row.copy()
        # The quotients themselves: rounded products may rise where the means are equal.
        while blocks and blocks[-1][1] / blocks[-1][0] >= block[1] / block[0]:
            block += blocks.pop()
        blocks.append(block)
    return np.array(blocks)


CURVES: dict[str, Callable[[Floats, Candidates, float], _Labelled]] = {
    "line": _fit_line,
    "steps": _fit_steps,
}
