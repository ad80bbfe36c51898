"""Calibrate a model on the validation facts of its data set."""

import math
from collections.abc import Callable

from knowformer.calibration.calibration import Calibration
from knowformer.calibration.calibrator import Calibrator
from knowformer.calibration.fit import fit_calibration
from knowformer.calibration.relation_fit import (
    FACTS,
    fit_relation_choice,
    relation_sample_size,
)
from knowformer.calibration.sample import sample_size
from knowformer.data.dataset import Dataset, Split
from knowformer.model.knowformer import KnowFormer
from knowformer.scoring.link import LinkFunction
from knowformer.scoring.scorer import Scorer


def num_questions(valid: Split) -> tuple[int, int]:
    """Returns how many questions for entities and for relations a calibration asks, at most."""
    return sample_size(valid), relation_sample_size(valid)


def calibrate_model(
    model: KnowFormer,
    dataset: Dataset,
    *,
    link: LinkFunction,
    seed: int,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
    is_enough: Callable[[int], bool] | None = None,
) -> Calibration:
    """Fits a calibration to the validation facts, without a look at which facts are test facts.

    Args:
        model: the trained model.
        dataset: the data set that it was trained on.
        link: its link function.
        seed: of the noise and the sampling.
        threads: CPU threads, 0 for all cores.
        progress: called with queries done and in all, first for entities, then for relations.
        is_enough: told how many queries for entities are scored; True ends them, unless they are
            too few, and the queries for relations are fewer in the same measure.

    Raises:
        DataError: there are too few validation facts.
    """
    valid = dataset.for_training().valid
    same_graph = dataset.test.graph is valid.graph
    scorer = Scorer(model, valid.graph, seed=seed, threads=threads)
    scored = total = 1

    def tell(done: int, of: int) -> None:
        nonlocal scored, total
        scored, total = done, of
        if progress is not None:
            progress(done, of)

    calibration = fit_calibration(
        scorer,
        valid,
        link=link,
        seed=seed,
        num_test_facts=len(dataset.test.facts) if same_graph else 0,
        progress=tell,
        is_enough=is_enough,
    )
    calibrator = Calibrator(calibration, link, valid.graph.relations)
    choice = fit_relation_choice(
        scorer,
        calibrator,
        valid,
        seed=seed,
        num_facts=math.ceil(FACTS * scored / total),
        progress=progress,
    )
    return calibration.model_copy(update={"relation_choice": choice})
