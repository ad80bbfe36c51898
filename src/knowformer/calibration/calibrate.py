"""Calibrate a model on the validation facts of its data set."""

from collections.abc import Callable
from functools import partial

from knowformer.calibration.calibration import Calibration
from knowformer.calibration.calibrator import Calibrator
from knowformer.calibration.fit import fit_calibration
from knowformer.calibration.relation_fit import fit_relation_choice
from knowformer.data.dataset import Dataset
from knowformer.model.knowformer import KnowFormer
from knowformer.scoring.link import LinkFunction
from knowformer.scoring.scorer import Scorer


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
        progress: called with what is done and what there is in all: queries for entities, then
            facts for the choice among relations.
        is_enough: told how many queries are scored; True ends it, unless they are too few.

    Raises:
        DataError: there are too few validation facts.
    """
    valid = dataset.for_training().valid
    same_graph = dataset.test.graph is valid.graph
    scorer = Scorer(model, valid.graph, seed=seed, threads=threads)
    calibration = fit_calibration(
        scorer,
        valid,
        link=link,
        seed=seed,
        num_test_facts=len(dataset.test.facts) if same_graph else 0,
        progress=progress,
        is_enough=is_enough,
    )
    calibrator = Calibrator(calibration, link, valid.graph.relations)
    choice = fit_relation_choice(
        scorer,
        calibrator,
        valid,
        seed=seed,
        progress=progress,
        is_enough=None if is_enough is None else partial(is_enough, 0),
    )
    return calibration.model_copy(update={"relation_choice": choice})
