"""Which inputs make good probabilities? Held-out log-loss on a run's validation candidates.

python docs/decisions/evidence/calibration_inputs.py RUN...
"""

import sys
from pathlib import Path

import numpy as np

from knowformer.calibration.calibration import COEFFICIENTS, feature_columns, sigmoid
from knowformer.calibration.fit import FOLDS, fit_logistic
from knowformer.calibration.sample import CalibrationSample, sample_candidates
from knowformer.runs.folder import load_bundle
from knowformer.scoring.scorer import Scorer

CHOICES = {
    "score minus crowd (a softmax's argument)": ("margin",),
    "score": ("score",),
    "score, crowd": ("score", "crowd"),
    "score, crowd, log_num_seen": ("score", "crowd", "log_num_seen"),
    "score, crowd, none_seen, log_num_seen": ("score", "crowd", "none_seen", "log_num_seen"),
}


def held_out_loss(rows: CalibrationSample, names: tuple[str, ...], ceiling: float) -> float:
    """Returns the log-loss per 1,000 candidates, each judged by a fit without its question."""
    every = feature_columns(rows.score, rows.competitors, rows.num_seen)
    column = dict(zip(COEFFICIENTS, every.T, strict=True))
    column["margin"] = rows.score - rows.competitors
    columns = np.stack([column[name] for name in (*names, "constant")], 1)
    given = -np.log(rows.num_candidates)
    fold, loss = rows.query % FOLDS, np.zeros(len(rows))
    for number in range(FOLDS):
        fits, judged = fold != number, fold == number
        found = fit_logistic(
            columns[fits], rows.is_true[fits], rows.weight[fits], ceiling, given=given[fits]
        )
        p = np.clip(ceiling * sigmoid(columns[judged] @ found + given[judged]), 1e-12, 1 - 1e-12)
        loss[judged] = -np.where(rows.is_true[judged], np.log(p), np.log1p(-p))
    return 1000 * float(np.average(loss, weights=rows.weight))


for run in sys.argv[1:]:
    bundle = load_bundle(Path(run))
    data = bundle.dataset
    valid = data.for_training().valid
    scorer = Scorer(bundle.model, valid.graph, seed=bundle.config.seed)
    sampled = sample_candidates(scorer, valid, link=bundle.link, seed=bundle.config.seed)
    hidden = len(data.test.facts) if data.test.graph is valid.graph else 0
    share = len(valid.facts) / (len(valid.facts) + hidden)
    print(f"{data.name}: log-loss per 1,000 candidates")
    for choice, inputs in CHOICES.items():
        print(f"  {held_out_loss(sampled, inputs, share):8.3f}  {choice}")
