import json

import pytest
import torch

from knowformer.errors import KnowformerError
from knowformer.evaluation.baselines.comparison import compare
from knowformer.evaluation.ranks import TIE_POLICIES, Ranks
from knowformer.evaluation.report import (
    EvaluationProtocol,
    EvaluationReport,
    ViewReport,
    metrics_by_policy,
    view_report,
)
from knowformer.views.settings import ViewSettings


def ranks(optimistic: list[float], pessimistic: list[float]) -> Ranks:
    both = (torch.tensor(r, dtype=torch.double) for r in (optimistic, pessimistic))
    return Ranks(*both, torch.arange(len(optimistic)) == 0)


@pytest.fixture
def report() -> EvaluationReport:
    its_ranks = ranks([1, 2], [1, 4])
    metrics = metrics_by_policy(its_ranks)
    realistic = metrics["realistic"]
    protocol = EvaluationProtocol(
        dataset="ring",
        split="test",
        setting="transductive",
        num_facts=1,
        num_queries=2,
        num_candidates=16,
        filter="train + valid + test",
        selection="on validation facts",
        noise="seed 0",
    )
    return EvaluationReport(
        protocol=protocol,
        **metrics,
        head=metrics,
        tail=metrics,
        categories={
            "1-1": {"num_facts": 2, "head": realistic, "tail": realistic},
            "1-N": {"num_facts": 0, "head": realistic, "tail": realistic},
        },
        link_prediction={"auroc": 0.75, "average_precision": 0.5},
        baselines=compare(
            1.0 / its_ranks.realistic,
            {"rules": its_ranks, "popularity": its_ranks},
            torch.tensor([False, True]),
        ),
        seconds=1.25,
        command="knowformer evaluate run",
    )


def test_every_tie_policy_has_its_metrics() -> None:
    metrics = metrics_by_policy(ranks([1, 2], [1, 4]))
    assert {policy: values["mr"] for policy, values in metrics.items()} == {
        "realistic": 2.0,
        "optimistic": 1.5,
        "pessimistic": 2.5,
    }


def test_the_headline_is_the_realistic_mrr(report: EvaluationReport) -> None:
    assert report.mrr == report.realistic["mrr"] == pytest.approx((1 + 1 / 3) / 2)


def test_the_json_has_the_keys_that_scripts_rely_on(report: EvaluationReport) -> None:
    stored = json.loads(report.model_dump_json())
    assert set(stored["protocol"]) >= {"dataset", "split", "filter", "headline", "selection"}
    for policy in ("realistic", "optimistic", "pessimistic"):
        assert set(stored[policy]) == {"mrr", "mr", "hits@1", "hits@3", "hits@10"}
        assert set(stored["head"]) == set(stored["tail"]) == {*stored["head"], policy}
    assert EvaluationReport.model_validate(stored) == report


def test_the_table_has_a_line_a_policy_baseline_and_side_but_none_for_categories_without_facts(
    report: EvaluationReport,
) -> None:
    table = report.table()
    assert [row[0] for row in table.rows] == [
        "model, realistic",
        "model, pessimistic",
        "model, optimistic",
        "two-hop rules",
        "popularity",
        "head side",
        "tail side",
        "1-1 head (2)",
        "1-1 tail (2)",
    ]
    assert table.sections == {2, 4, 6}
    assert table.title == "ring, test: 1 facts asked both ways, 16 candidates"
    assert table.caption.startswith(
        "the model is not clearly better than two-hop rules (0.667) and popularity (0.667)\n"
        "AUROC 0.750, average precision 0.500\ntransductive\n"
    )


def test_tie_policies_that_agree_share_a_line(report: EvaluationReport) -> None:
    one = report.model_copy(update=dict.fromkeys(TIE_POLICIES, report.realistic))
    assert [row[0] for row in one.table().rows][:2] == [
        "model, however ties count",
        "two-hop rules",
    ]


def test_a_report_read_from_json_has_no_facts_to_group(report: EvaluationReport) -> None:
    with pytest.raises(KnowformerError, match="with its facts"):
        report.by_relation()


def test_coverage_tells_answers_inside_from_those_outside(report: EvaluationReport) -> None:
    of_views = view_report(ranks([1, 4], [1, 4]), ViewSettings(size=8))
    assert of_views == ViewReport(size=8, coverage=0.5, mrr_inside=1.0, mrr_outside=0.25)
    caption = report.model_copy(update={"view": of_views}).table().caption
    assert "a query sees 8 entities, 50.0% of the answers among them" in caption
    assert view_report(ranks([1], [1]), None) is None
