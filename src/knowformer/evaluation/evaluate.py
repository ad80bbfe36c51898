"""Evaluate a split: rank every fact in both directions and return a report."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.calibration.calibration import Calibration
from knowformer.calibration.calibrator import Calibrator
from knowformer.data.dataset import Dataset, GraphSource, Split
from knowformer.data.holdout import sample_facts
from knowformer.data.loading import load_dataset
from knowformer.evaluation.baselines.comparison import compare
from knowformer.evaluation.baselines.ranking import rank_baselines
from knowformer.evaluation.link_prediction import predict_links
from knowformer.evaluation.metrics import rank_metrics
from knowformer.evaluation.ranked_facts import RankedFacts
from knowformer.evaluation.ranks import Ranks, filtered_ranks
from knowformer.evaluation.relation_ranks import rank_relations
from knowformer.evaluation.reliability import CalibrationReport, measure_calibration
from knowformer.evaluation.report import (
    EvaluationProtocol,
    EvaluationReport,
    metrics_by_policy,
    view_report,
)
from knowformer.graph.categories import CATEGORIES, relation_categories
from knowformer.graph.inverse import base_relation, is_inverse, with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.batches import evaluation_batches
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.query import QueryBatch
from knowformer.scoring.link import LinkFunction
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import generator
from knowformer.system.workers import torch_on_one_core

Progress = Callable[[int, int], None]
MapInOrder = Callable[
    [Callable[[Any], Sequence[Tensor]], Sequence[Any]], Iterable[Sequence[Tensor]]
]

BATCH_SIZE = 128  # queries scored between two reports of progress


@torch_on_one_core()
def rank_split(
    scorer: Scorer,
    split: Split,
    *,
    batch_size: int = BATCH_SIZE,
    progress: Progress | None = None,
    imap: MapInOrder = map,
) -> tuple[Ranks, Int[Tensor, "F 3"], int]:
    """Ranks every fact of a split in both directions.

    Args:
        scorer: scores the queries.
        split: gives the facts, their graph and the filter.
        batch_size: queries scored between two reports of progress.
        progress: called with facts done and facts in all.
        imap: goes through the batches, and may share them out.

    Returns:
        Ranks, the directed facts that they belong to (inverse relations ask for heads), and the
        number of distinct queries: facts with the same (head, relation) are scored together.
    """
    graph = split.graph
    num_relations = len(graph.relations)
    directed = with_inverse_facts(split.facts, num_relations)
    known = KnownAnswers.of_split(split)
    optimistic = torch.zeros(len(directed), dtype=torch.double)
    pessimistic = torch.zeros_like(optimistic)
    is_seen = torch.zeros(len(directed), dtype=torch.bool)
    of_answers = torch.zeros_like(optimistic)

    def rank_batch(numbered: tuple[QueryBatch, Tensor]) -> Sequence[Tensor]:
        batch, _ = numbered
        scores = scorer.score(batch.heads, batch.relations, outside=True)
        answers = known.lookup(batch.heads, batch.relations)
        ranks = filtered_ranks(scores, answers, batch.rows, batch.tails)
        found = [ranks.optimistic, ranks.pessimistic, ranks.is_seen]
        return found if ranks.scores is None else [*found, ranks.scores.double()]

    batches = list(evaluation_batches(directed, num_relations, batch_size))
    num_queries = done = 0
    wanted = (optimistic, pessimistic, is_seen, of_answers)
    for (batch, positions), found in zip(batches, imap(rank_batch, batches), strict=True):
        for whole, part in zip(wanted, found, strict=False):  # scores may not be there
            whole[positions] = part
        num_queries += len(batch)
        done += len(positions)
        if progress is not None:
            progress(done, len(directed))
    return Ranks(optimistic, pessimistic, is_seen, of_answers), directed, num_queries


def evaluate(
    model: KnowFormer,
    source: GraphSource,
    split_name: str = "test",
    *,
    seed: int = 0,
    threads: int = 0,
    progress: Progress | None = None,
    trained_on: KnowledgeGraph | None = None,
    calibration: Calibration | None = None,
    link: LinkFunction = "softmax",
    relations: int = 0,
    num_facts: int | None = None,
    command: str | None = None,
) -> EvaluationReport:
    """Evaluates a model on a split of a data set by filtered ranking.

    Args:
        model: the model.
        source: a data set, a graph, a path or a name of the catalogue; gives the split, its graph,
            its filter and the training facts.
        split_name: ``test``, ``valid`` or ``train``.
        seed: of the identity noise, and of the split of a source that has none of its own.
        threads: CPU threads, 0 for all cores.
        progress: called with facts done and facts in all.
        trained_on: the graph the model was trained on, if it is not the data set's training graph.
        calibration: the model's, to be measured as well; not on ``train``, whose facts it sees.
        link: the model's link function, for relations where there is no calibration.
        relations: ask for the relation of so many facts as well.
        num_facts: ask a sample of so many facts, drawn by the seed; none: all.
        command: what the user typed, to be kept in the report.
    """
    started = time.perf_counter()
    dataset = load_dataset(source, seed=seed)
    whole = dataset.split(split_name)
    split = whole
    if num_facts is not None:
        split = sample_facts(whole, num_facts, generator=generator(seed, "evaluation"))
    scorer = Scorer(model, split.graph, seed=seed, threads=threads)
    ranks, directed, num_queries = rank_split(scorer, split, progress=progress)
    trained_on = trained_on or dataset.train.graph
    # Rules about other relations would say nothing: then they are learnt where they are asked.
    has_rules = trained_on.relations == split.graph.relations
    view = model.config.view_of(len(split.graph.entities))
    facts = RankedFacts(
        directed,
        ranks,
        rank_baselines(split, trained_on=trained_on if has_rules else split.graph),
        entities=split.graph.entities,
        relations=split.graph.relations,
        has_views=view is not None,
    )
    asks_head = facts.asks_head
    calibrator = Calibrator(calibration, link, split.graph.relations)
    return EvaluationReport(
        protocol=_protocol(dataset, whole, split, num_queries, seed, trained_on=trained_on),
        **metrics_by_policy(ranks),
        head=metrics_by_policy(ranks[asks_head]),
        tail=metrics_by_policy(ranks[~asks_head]),
        categories=_by_category(ranks, directed, dataset),
        view=view_report(ranks, view),
        link_prediction=predict_links(scorer, split, seed=seed),
        # Of the whole split: where other true answers are left out, probabilities look too high.
        calibration=_calibration(scorer, whole, calibration, seed, progress),
        relation_ranks=_relations(scorer, split, calibrator, relations, seed, progress),
        baselines=compare(1.0 / ranks.realistic, facts.baselines, asks_head),
        facts=facts,
        seconds=round(time.perf_counter() - started, 3),
        command=command,
    )


def _calibration(
    scorer: Scorer,
    split: Split,
    calibration: Calibration | None,
    seed: int,
    progress: Progress | None,
) -> CalibrationReport | None:
    if calibration is None or split.name == "train":
        return None
    return measure_calibration(scorer, split, calibration, seed=seed, progress=progress)


def _relations(
    scorer: Scorer,
    split: Split,
    calibrator: Calibrator,
    num_facts: int,
    seed: int,
    progress: Progress | None,
) -> dict[str, Any] | None:
    if num_facts == 0 or len(split.facts) == 0:
        return None
    return rank_relations(scorer, split, calibrator, num_facts, seed=seed, progress=progress)


def _by_category(
    ranks: Ranks, directed: Int[Tensor, "F 3"], dataset: Dataset
) -> dict[str, dict[str, object]]:
    num_relations = len(dataset.relations)
    category_of = relation_categories(dataset.train.facts, num_relations)
    number_of = torch.tensor([CATEGORIES.index(category) for category in category_of])
    numbers = number_of[base_relation(directed[:, 1], num_relations)]
    asks_head = is_inverse(directed[:, 1], num_relations)
    table: dict[str, dict[str, object]] = {}
    for number, category in enumerate(CATEGORIES):
        for side, on_side in (("head", asks_head), ("tail", ~asks_head)):
            at = (numbers == number) & on_side
            row = table.setdefault(category, {"num_facts": int(at.sum())})
            row[side] = rank_metrics(ranks[at].realistic)
    return table


def _protocol(
    dataset: Dataset,
    whole: Split,
    split: Split,
    num_queries: int,
    seed: int,
    *,
    trained_on: KnowledgeGraph,
) -> EvaluationProtocol:
    return EvaluationProtocol(
        dataset=dataset.name,
        split=split.name,
        setting=_setting(split, trained_on),
        num_facts=len(split.facts),
        sampled_from=len(whole.facts) if len(split.facts) < len(whole.facts) else None,
        num_queries=num_queries,
        num_candidates=len(split.graph.entities),
        filter=f"known facts removed from the candidates: {_filter_splits(dataset, split)}",
        selection="weights chosen on validation facts alone",
        noise=f"repeatable, seed {seed}",
    )


def _setting(split: Split, trained_on: KnowledgeGraph) -> str:
    setting = "transductive"
    if not split.graph.same_as(trained_on):
        trained = {trained_on.relations.names[r] for r in trained_on.facts[:, 1].unique().tolist()}
        asked = {split.graph.relations.names[r] for r in split.facts[:, 1].unique().tolist()}
        new = len(asked - trained)
        setting = "inductive: a graph not seen in training" + (
            f"; {new} of the {len(asked)} relations asked for are new too" if new else ""
        )
    if split.name == "train":
        setting += "; the facts asked for are themselves edges, so this is no test"
    return setting


def _filter_splits(dataset: Dataset, split: Split) -> str:
    """Names the splits whose facts are the filter: those on the same graph."""
    if dataset.is_inductive and split.graph is dataset.train.graph:
        splits = (dataset.train, dataset.valid)
        return " + ".join(other.name for other in splits if other.graph is split.graph)
    return "train + valid + test"
