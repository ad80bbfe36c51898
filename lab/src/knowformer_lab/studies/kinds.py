"""What each kind of experiment measures once a model is trained."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.evaluation.evaluate import evaluate, rank_split
from knowformer.evaluation.link_prediction import predict_links
from knowformer.evaluation.metrics import rank_metrics
from knowformer.evaluation.report import EvaluationReport
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.traversal import UNREACHED
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import generator
from knowformer_lab.experiment import Experiment, Kind
from knowformer_lab.studies.attention import measure_attention
from knowformer_lab.studies.theory import measure_bound
from knowformer_lab.trained_run import TrainedRun
from knowformer_lab.validations import ValidationWeights

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Measured:
    """A report on test facts, if the kind makes one, and what it measures besides."""

    evaluation: EvaluationReport | None = None
    study: dict[str, Any] | None = None


Study = Callable[[Experiment, TrainedRun, Progress | None], Measured]


def rank_test_facts(experiment: Experiment, run: TrainedRun, progress: Progress | None) -> Measured:
    """Kind ranking."""
    del experiment
    return Measured(run.reasoner.evaluate("test", progress=progress))


def report_validation(
    experiment: Experiment, run: TrainedRun, progress: Progress | None
) -> Measured:
    """Kind validation: the training's record, and AUROC where the paper reports that.

    Nothing here can read test facts.
    """
    del experiment, progress
    reasoner = run.reasoner
    valid = reasoner.dataset.for_training().valid
    if len(valid.graph.relations) > 1:
        return Measured()
    seed = reasoner.config.seed
    scorer = Scorer(reasoner.model, valid.graph, seed=seed, threads=reasoner.config.threads)
    return Measured(study=predict_links(scorer, valid, seed=seed))


def study_selection(experiment: Experiment, run: TrainedRun, progress: Progress | None) -> Measured:
    """Kind selection: test scores of every validation's weights, after all was chosen."""
    del experiment
    reasoner, points = run.reasoner, run.record.validations
    weights = ValidationWeights(run.folder)
    reports: dict[int, EvaluationReport] = {}
    for number, point in enumerate(points, start=1):
        reasoner.model.load_state_dict(weights.load(point.step))
        reports[point.step] = evaluate(
            reasoner.model,
            reasoner.dataset,
            "test",
            seed=reasoner.config.seed,
            threads=reasoner.config.threads,
        )
        if progress is not None:
            progress(number, len(points))
    chosen = reports[run.record.chosen_step]
    best = max(report.mrr for report in reports.values())
    study = {
        "chosen_mrr": chosen.mrr,
        "best_on_test_mrr": best,
        "leak": best - chosen.mrr,
        "points": [{**point.model_dump(), "test_mrr": reports[point.step].mrr} for point in points],
    }
    return Measured(chosen, study)


def study_paths(experiment: Experiment, run: TrainedRun, progress: Progress | None) -> Measured:
    """Kind paths: MRR by length of the shortest path, and with facts missing from the graph."""
    reasoner, options = run.reasoner, experiment.study
    seed, threads = reasoner.config.seed, reasoner.config.threads
    split = reasoner.dataset.test
    report = reasoner.evaluate("test", progress=progress)
    scorer = Scorer(reasoner.model, split.graph, seed=seed, threads=threads)
    ranks = rank_split(scorer, split)[0].realistic
    # Every fact is asked both ways, and a path is as long backwards.
    lengths = shortest_path_lengths(split.graph, split.facts, options.max_length).repeat(2)
    by_length: list[dict[str, Any]] = []
    for length in [*range(1, options.max_length + 1), None]:
        at = lengths == (0 if length is None else length)
        row = {"length": length, "num_facts": int(at.sum()) // 2, **rank_metrics(ranks[at])}
        by_length.append(row)
    by_dropped: list[dict[str, Any]] = []
    for fraction in options.dropped:
        thinner = with_facts_dropped(split, fraction, seed=seed)
        scorer = Scorer(reasoner.model, thinner.graph, seed=seed, threads=threads)
        metrics = rank_metrics(rank_split(scorer, thinner)[0].realistic)
        by_dropped.append({"dropped": fraction, "facts_left": len(thinner.graph.facts), **metrics})
    return Measured(report, {"by_length": by_length, "by_dropped": by_dropped})


def study_attention(experiment: Experiment, run: TrainedRun, progress: Progress | None) -> Measured:
    """Kind attention: what the answers to the experiment's questions attend to."""
    reasoner = run.reasoner
    study = measure_attention(
        reasoner.model,
        reasoner.dataset,
        experiment.study.questions,
        seed=reasoner.config.seed,
        progress=progress,
    )
    return Measured(study=study.model_dump(mode="json"))


def study_bound(experiment: Experiment, run: TrainedRun, progress: Progress | None) -> Measured:
    """Kind bound: theorem 1 on the similarities of a trained model."""
    del progress
    reasoner = run.reasoner
    study = measure_bound(
        reasoner.model,
        reasoner.dataset.valid,
        seed=reasoner.config.seed,
        num_queries=experiment.study.num_queries,
    )
    return Measured(study=study)


STUDIES: dict[Kind, Study] = {
    "ranking": rank_test_facts,
    "validation": report_validation,
    "selection": study_selection,
    "paths": study_paths,
    "attention": study_attention,
    "bound": study_bound,
}


def shortest_path_lengths(
    graph: KnowledgeGraph, facts: Int[Tensor, "F 3"], max_length: int
) -> Int[Tensor, " F"]:
    """Returns the edges on the shortest path from head to tail, in any direction.

    Paths of ``max_length`` edges and more count as ``max_length``; 0 means that there is none.
    """
    evidence = EvidenceGraph(graph.adjacency.edges)
    lengths = torch.zeros(len(facts), dtype=torch.long)
    for head in facts[:, 0].unique().tolist():
        asked = facts[:, 0] == head
        distances = torch.from_numpy(evidence.distances(head))[facts[asked, 2]]
        lengths[asked] = distances.where(distances < UNREACHED, 0).clamp(max=max_length)
    return lengths


def with_facts_dropped(split: Split, fraction: float, *, seed: int) -> Split:
    """Returns the split with facts of its graph dropped: the same first ones for any fraction."""
    facts = split.graph.facts
    order = torch.randperm(len(facts), generator=generator(seed, "dropped_facts"))
    left = order[round(fraction * len(facts)) :].sort().values
    graph = KnowledgeGraph(split.graph.entities, split.graph.relations, facts[left])
    return replace(split, graph=graph)
