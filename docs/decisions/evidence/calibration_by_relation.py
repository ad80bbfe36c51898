"""How well do probabilities hold where they matter? The former fit beside the one in use.

python docs/decisions/evidence/calibration_by_relation.py [--questions N] RUN...

Both are fitted to the same validation candidates and judged on the same test candidates. The former
one gave a curve of its own to each relation and side with at least 50 validation facts, if that
lowered the held-out log-loss over all candidates. Trains nothing, and leaves the runs as they are.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from knowformer.calibration import fit
from knowformer.calibration.calibration import Calibration
from knowformer.calibration.sample import QUERIES, CalibrationSample, sample_candidates
from knowformer.data.dataset import Split
from knowformer.evaluation.reliability import CalibrationReport, measure_sample
from knowformer.graph.inverse import Side, asked_relation
from knowformer.runs.folder import load_bundle
from knowformer.scoring.scorer import Scorer

MIN_FACTS_OF_RELATION = 50


def former_fit(
    rows: CalibrationSample, valid: Split, ceiling: float, as_now: Calibration
) -> Calibration:
    """Fits the curves that were in use before: all that differs from ``as_now``."""
    found, counts = np.unique(rows.relation[rows.is_true], return_counts=True)
    enough = found[counts >= MIN_FACTS_OF_RELATION].tolist()
    groups = {None: np.ones(len(rows), dtype=bool)} | {r: rows.relation == r for r in enough}
    losses = {(group, kind): np.zeros(len(rows)) for group in groups for kind in fit.CURVES}
    fold = rows.query % fit.FOLDS
    for number in range(fit.FOLDS):
        log_odds = fit._log_odds(rows, fit._fit_coefficients(rows[fold != number], ceiling))
        for group, of_group in groups.items():
            fits, out = of_group & (fold != number), of_group & (fold == number)
            for kind, curve in fit.fit_curves(log_odds[fits], rows[fits], ceiling).items():
                loss = fit._log_loss(curve.apply(log_odds[out]), rows[out])
                losses[group, kind][out] = loss
    log_odds = fit._log_odds(rows, fit._fit_coefficients(rows, ceiling))
    pooled = min(fit.CURVES, key=lambda kind: losses[None, kind].sum())
    curves = {}
    for relation in enough:
        at = groups[relation]
        options = {kind: losses[relation, kind][at].sum() for kind in fit.CURVES}
        kind = min(options, key=lambda kind: options[kind])
        if options[kind] < losses[None, pooled][at].sum():
            name, side = asked_relation(relation, valid.graph.relations)
            own = fit.fit_curves(log_odds[at], rows[at], ceiling)[kind]
            curves.setdefault(name, {})[side] = own.of_truth()
    everyone = fit.fit_curves(log_odds, rows, ceiling)[pooled].of_truth()
    return as_now.model_copy(update={"pooled": everyone, "relations": curves, "lines": {}})


def describe(report: CalibrationReport) -> str:
    """Returns the figures of calibrated probabilities."""
    lines = [
        f"over all: error {report.expected_calibration_error.after:.4f}, "
        f"log-loss {report.log_loss.after:.5f}",
        *report.headline(),
    ]
    for name, of in (("above", report.above), ("best", report.best)):
        if of is not None and of.after.is_enough:
            lines.append(f"error {name}: {of.after.error_low:.3f} to {of.after.error_high:.3f}")
    return "\n    ".join(lines)


def compare(run: Path, questions: int) -> None:
    """Prints both fits of one run."""
    bundle = load_bundle(run)
    seed, link = bundle.config.seed, bundle.link
    valid, test = bundle.dataset.for_training().valid, bundle.dataset.test

    def sampled(split: Split) -> CalibrationSample:
        scorer = Scorer(bundle.model, split.graph, seed=seed)
        return sample_candidates(scorer, split, link=link, seed=seed, queries=questions)

    rows, judged = sampled(valid), sampled(test)
    hidden = len(test.facts) if test.graph is valid.graph else 0
    started = time.process_time()
    new = fit.fit_sample(rows, valid, link=link, seed=seed, num_test_facts=hidden)
    between = time.process_time()
    old = former_fit(rows, valid, fit.labelled_share(valid, hidden), new)
    ended = time.process_time()
    print(f"{bundle.dataset.name}: fitted to {new.fitted_on.facts:,} validation facts")
    for title, calibration, seconds in (
        (f"former: {old.pooled.kind}, {count(old.relations)} curves", old, ended - between),
        (f"in use: {new.pooled.kind}, {count(new.lines)} lines", new, between - started),
    ):
        report = measure_sample(judged, test, calibration, seed=seed)
        print(f"  {title}, {seconds:.1f} s of the processor\n    {describe(report)}", flush=True)


def count(by_relation: dict[str, dict[Side, Any]]) -> int:
    """Returns how many relations and sides have something of their own."""
    return sum(map(len, by_relation.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=QUERIES)
    parser.add_argument("runs", nargs="+", type=Path)
    given = parser.parse_args()
    for each in given.runs:
        compare(each, given.questions)
