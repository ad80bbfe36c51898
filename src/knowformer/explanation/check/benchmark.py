"""Faithfulness on a test set: explains some of its facts, and reports the curves."""

import time

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError
from knowformer.evaluation.bootstrap import CONFIDENCE
from knowformer.evaluation.evaluate import Progress
from knowformer.explanation.check.curves import CurveCollector
from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.graph.inverse import with_inverse_facts
from knowformer.model.knowformer import KnowFormer
from knowformer.seeding import generator
from knowformer.system.workers import torch_on_one_core

NUM_DRAWS = 3


@torch_on_one_core()
def measure_test_set(
    model: KnowFormer,
    dataset: Dataset,
    num_predictions: int,
    *,
    seed: int,
    num_draws: int = NUM_DRAWS,
    progress: Progress | None = None,
    command: str | None = None,
) -> FaithfulnessReport:
    """Explains test facts, each asked for its head or its tail, drawn by the seed.

    Args:
        model: the model.
        dataset: gives the test facts, their graph and what is known.
        num_predictions: how many facts; all if there are fewer.
        seed: of the noise, the choice of facts and random evidence.
        num_draws: draws of random evidence for each prediction.
        progress: called with predictions done and predictions in all.
        command: what the user typed, to be kept in the report.
    """
    if num_predictions < 1:
        raise ConfigError(f"Expected a positive number of predictions, got {num_predictions}.")
    started = time.perf_counter()
    split = dataset.test
    finder = EvidenceFinder.on_split(model, split, seed=seed)
    chosen = choose_facts(split.facts, len(split.graph.relations), num_predictions, seed=seed)
    collector = CurveCollector(finder, num_draws=num_draws, seed=seed)
    for number, (head, relation, answer) in enumerate(chosen.tolist(), start=1):
        collector.add(finder.prediction(head, relation, answer))
        if progress is not None:
            progress(number, len(chosen))
    return FaithfulnessReport(
        dataset=dataset.name,
        num_predictions=len(chosen),
        num_draws=num_draws,
        confidence=CONFIDENCE,
        mean_reciprocal_rank=sum(1 / rank for rank in collector.ranks) / len(chosen),
        curves=collector.curves(),
        seconds=round(time.perf_counter() - started, 1),
        seconds_per_explanation=round(collector.seconds_finding / len(chosen), 3),
        command=command,
    )


def choose_facts(
    facts: Int[Tensor, "N 3"], num_relations: int, count: int, *, seed: int
) -> Int[Tensor, "P 3"]:
    """Draws facts and their inverses, none twice."""
    directed = with_inverse_facts(facts, num_relations)
    order = torch.randperm(len(directed), generator=generator(seed, "explained_facts"))
    return directed[order[:count]]
