from pathlib import Path

import pytest
import torch

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError
from knowformer.explanation.check.benchmark import measure_test_set
from knowformer.explanation.check.curves import (
    ENTITY_COUNTS,
    KINDS,
    MEASURES,
    MODES,
    PATH_COUNTS,
    FaithfulnessReport,
)
from knowformer.explanation.show.picture import draw_curves
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize


def measure(ring: Dataset, count: int, seed: int = 0) -> FaithfulnessReport:
    config = ModelConfig(hidden_dim=16, num_layers=1, num_heads=4)
    model = KnowFormer(config, 2 * len(ring.relations))
    initialize(model, generator=torch.Generator().manual_seed(0))
    return measure_test_set(model, ring, count, seed=seed, num_draws=2)


@pytest.fixture(scope="module")
def report(ring: Dataset) -> FaithfulnessReport:
    return measure(ring, 4)


def test_a_report_has_every_curve_at_every_size(report: FaithfulnessReport) -> None:
    assert report.num_predictions == 4
    assert {curve.evidence for curve in report.curves} >= {"paths", "attended"}
    for curve in report.curves:
        sizes = PATH_COUNTS if curve.evidence == "paths" else ENTITY_COUNTS
        assert [point.size for point in curve.points] == list(sizes)
        assert 1 <= curve.num_predictions <= 4
        for point in curve.points:
            assert point.difference == pytest.approx(point.named - point.random)
            assert point.low - 1e-12 <= point.difference <= point.high + 1e-12
    distinct = {(c.evidence, c.mode, c.measure) for c in report.curves}
    kinds = {curve.evidence for curve in report.curves}
    assert len(distinct) == len(report.curves) == len(kinds) * len(MODES) * len(MEASURES)
    assert kinds <= set(KINDS)


def test_measuring_twice_gives_the_same_curves_and_another_seed_other_facts(
    report: FaithfulnessReport, ring: Dataset
) -> None:
    assert measure(ring, 4).curves == report.curves
    assert measure(ring, 4, seed=1).curves != report.curves


def test_no_more_is_explained_than_there_is(ring: Dataset) -> None:
    assert measure(ring, 1000).num_predictions == 2 * len(ring.test.facts)


def test_at_least_one_prediction_is_asked_for(ring: Dataset) -> None:
    with pytest.raises(ConfigError, match="positive number of predictions, got 0"):
        measure(ring, 0)


def test_a_report_becomes_json_a_table_and_a_picture(
    report: FaithfulnessReport, tmp_path: Path
) -> None:
    assert FaithfulnessReport.model_validate_json(report.model_dump_json()) == report
    assert len(report.to_pandas()) == sum(len(curve.points) for curve in report.curves)
    assert report.verdicts()[0].startswith("The facts of 5 paths ")
    assert report.verdicts()[-1].startswith("the 10 most attended entities ")
    draw_curves(report, tmp_path / "curves.svg")
    assert b"<!-- paths, deletion -->" in (tmp_path / "curves.svg").read_bytes()
