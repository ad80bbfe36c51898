import math
from collections.abc import Callable

import pytest

from knowformer.explanation.check.curves import ENTITY_COUNTS, PATH_COUNTS, CurveCollector
from knowformer.explanation.check.faithfulness import Removal, score_margin
from knowformer.explanation.check.faithfulness_report import (
    KINDS,
    MEASURES,
    MODES,
    FaithfulnessReport,
)
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.graph.knowledge_graph import KnowledgeGraph


def test_a_report_has_every_curve_at_every_size(report: FaithfulnessReport) -> None:
    assert report.num_predictions == 2
    assert {curve.evidence for curve in report.curves} >= {"paths", "attended"}
    for curve in report.curves:
        sizes = PATH_COUNTS if curve.evidence == "paths" else ENTITY_COUNTS
        assert [point.size for point in curve.points] == list(sizes)
        assert 1 <= curve.num_predictions <= 2
        for point in curve.points:
            assert point.difference == pytest.approx(point.named - point.random)
            assert point.low - 1e-12 <= point.difference <= point.high + 1e-12
    distinct = {(c.evidence, c.mode, c.measure) for c in report.curves}
    kinds = {curve.evidence for curve in report.curves}
    assert len(distinct) == len(report.curves) == len(kinds) * len(MODES) * len(MEASURES)
    assert kinds <= set(KINDS)


def test_curves_of_one_prediction_are_its_drops_and_gains(
    family: KnowledgeGraph, finder: Callable[..., EvidenceFinder]
) -> None:
    bound = finder(family, seed=2)
    prediction = bound.prediction(family.entities.id("eve"), 0, family.entities.id("bob"))
    collector = CurveCollector(bound, num_draws=2, seed=0)
    collector.add(prediction)
    evidence = bound.find(prediction)
    before = score_margin(evidence.trace.scores, prediction)
    removal = Removal(bound, evidence)
    curves = {(c.evidence, c.mode, c.measure): c.points for c in collector.curves()}
    assert collector.ranks == [before.rank]
    for kind in KINDS:
        first = evidence.pieces(kind, 1)
        lost = curves[kind, "deletion", "log_odds"][0]
        assert lost.pieces == len(first)
        expected = before.log_odds - removal.without(kind, first).log_odds
        assert lost.named == pytest.approx(expected)
        gained = curves[kind, "insertion", "reciprocal_rank"][0]
        alone, nothing = removal.alone(kind, first), removal.alone(kind, [])
        assert gained.named == pytest.approx(1 / alone.rank - 1 / nothing.rank)


def test_a_kind_without_evidence_has_no_curves(
    family: KnowledgeGraph, finder: Callable[..., EvidenceFinder]
) -> None:
    bound = finder(family, seed=2, attention=False)
    collector = CurveCollector(bound, num_draws=1, seed=0)
    assert collector.curves() == []
    collector.add(bound.prediction(family.entities.id("eve"), 0, family.entities.id("bob")))
    assert {curve.evidence for curve in collector.curves()} == {"paths"}
    collector.add(bound.prediction(family.entities.id("eve"), 0, family.entities.id("zoe")))
    assert len(collector.ranks) == 2
    assert {curve.num_predictions for curve in collector.curves()} == {1}


def test_an_answer_outside_of_its_view_counts_by_its_rank_alone(
    random_graph: Callable[..., KnowledgeGraph], finder: Callable[..., EvidenceFinder]
) -> None:
    graph = random_graph(2, num_entities=30, num_facts=60)
    bound = finder(graph, view_size=12)
    collector = CurveCollector(bound, num_draws=1, seed=0)
    predictions = [bound.prediction(0, 1, answer) for answer in range(1, 30)]
    sees = {bool(bound.find(each).sees_answer): each for each in predictions}
    collector.add(sees[False])
    assert collector.ranks[0] > 12
    assert collector.curves() == []
    collector.add(sees[True])
    values = [point.named for curve in collector.curves() for point in curve.points]
    assert values
    assert all(map(math.isfinite, values))
