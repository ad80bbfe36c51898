"""Do probabilities of the shipped model hold on a graph that it has not seen? Three fits.

python docs/decisions/evidence/zero_shot_calibration.py [NAME ...]

Own: as the model's link function gives them. Others: a line in the log-odds of a softmax over the
candidates, with the known answers of the question as further inputs, fitted to the validation facts
of all the other graphs (leave-one-graph-out). Own facts: as ``knowformer calibrate GRAPH --out
RUN`` fits them, to the validation facts of the graph itself. Each is judged on the test facts of
the graph, by the candidates that it gives more than .1: their mean probability, the share of them
that is true, and the expected calibration error.
"""

import sys
from dataclasses import dataclass

import numpy as np

from knowformer.calibration.calibration import Calibration, Curve, feature_columns
from knowformer.calibration.fit import fit_logistic, fit_sample, labelled_share
from knowformer.calibration.sample import CalibrationSample, sample_candidates
from knowformer.data.dataset import Dataset, Split
from knowformer.data.loading import load_dataset
from knowformer.evaluation.reliability import Agreement, measure_sample
from knowformer.runs.folder import load_bundle
from knowformer.runs.shipped import SHIPPED_FOLDER
from knowformer.scoring.scorer import Scorer

NAMES = ["kg20c", "ddb14", "inferwiki16k", "wiki27k", "wd50k", "umls-pykeen", "nations", "kinship"]
QUERIES = 300  # of a graph that miss a fact, and as many of the others
SEED = 0


@dataclass(frozen=True)
class Sampled:
    """Candidates of a graph's validation and test questions."""

    valid: Split
    test: Split
    num_test_facts: int
    fitted: CalibrationSample
    judged: CalibrationSample
    own_facts: Calibration

    @classmethod
    def of(cls, dataset: Dataset) -> "Sampled":
        """Asks the shipped model."""
        bundle = load_bundle(SHIPPED_FOLDER)
        valid, test = dataset.for_training().valid, dataset.test
        hidden = len(test.facts) if test.graph is valid.graph else 0
        fitted, judged = (
            sample_candidates(
                Scorer(bundle.model, split.graph, seed=SEED, threads=1),
                split, link=bundle.link, seed=SEED, queries=QUERIES,
            )
            for split in (valid, test)
        )  # fmt: skip
        own = fit_sample(fitted, valid, link=bundle.link, seed=SEED, num_test_facts=hidden)
        return cls(valid, test, hidden, fitted, judged, own)


def columns_of(sample: CalibrationSample) -> np.ndarray:
    """Returns the log-odds of a softmax, and what is known of the question."""
    columns = feature_columns(sample.score, sample.competitors, sample.num_seen)
    margin = columns[:, 0] - columns[:, 1] - np.log(sample.num_candidates)
    return np.concatenate([margin[:, None], columns[:, 2:]], axis=1)


def fitted_to(others: list[Sampled]) -> Calibration:
    """Returns one calibration of several graphs, each of which counts as much as the others."""
    share = float(np.mean([labelled_share(of.valid, of.num_test_facts) for of in others]))
    slope, none_seen, log_num_seen, shift = fit_logistic(
        np.concatenate([columns_of(of.fitted) for of in others]),
        np.concatenate([of.fitted.is_true for of in others]),
        np.concatenate([of.fitted.weight / of.fitted.weight.sum() * 1e5 for of in others]),
        share,
    )
    coefficients = {
        "score": 1.0, "crowd": -1.0, "none_seen": none_seen / slope,
        "log_num_seen": log_num_seen / slope, "constant": 0.0,
    }  # fmt: skip
    line = Curve(kind="line", slope=slope, shift=shift + np.log(share))
    return others[0].own_facts.model_copy(
        update={"coefficients": coefficients, "pooled": line, "lines": {}}
    )


def in_words(found: Agreement) -> str:
    """Returns an agreement in a column's width."""
    if found.mean_probability is None:
        return f"too few ({found.num_candidates})".ljust(21)
    return (
        f"{found.mean_probability:.3f} {found.share_true:.3f} "
        f"{found.expected_calibration_error:.3f} {found.num_candidates:5}"
    )


names = sys.argv[1:] or NAMES
sampled = {name: Sampled.of(load_dataset(name)) for name in names}
print("above .1: mean probability, share true, error, candidates")
print(f"{'':13} {'own':21}  {'others':21}  own facts")
for name, graph in sampled.items():
    across = fitted_to([other for key, other in sampled.items() if key != name])
    both = [
        measure_sample(graph.judged, graph.test, calibration, seed=SEED).above
        for calibration in (across, graph.own_facts)
    ]
    assert both[0] is not None
    assert both[1] is not None
    shown = [both[0].before, both[0].after, both[1].after]
    print(f"{name:13} {'  '.join(map(in_words, shown))}")
