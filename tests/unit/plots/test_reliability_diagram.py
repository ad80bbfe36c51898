import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from knowformer.evaluation.reliability import (
    Agreement,
    AgreementBeforeAfter,
    CalibrationReport,
    ReliabilityBin,
)
from knowformer.plots.learning_curve import can_draw
from knowformer.plots.palette import BLUE, GREY, ORANGE
from knowformer.plots.reliability_diagram import draw_reliability

pytestmark = pytest.mark.skipif(not can_draw(), reason="matplotlib is not installed")


FEW = Agreement(num_candidates=7, num_questions=5, effective_candidates=6.5, is_enough=False)
MANY = FEW.model_copy(
    update={
        "num_candidates": 812,
        "expected_calibration_error": 0.07,
        **{"mean_probability": 0.22, "share_true": 0.15, "share_low": 0.13, "share_high": 0.18},
    }
)


def bin_at(probability: float, **interval: float) -> ReliabilityBin:
    return ReliabilityBin(
        mean_probability=probability, share_true=0.5, share_of_candidates=0.1, **interval
    )


def report(*bins: ReliabilityBin) -> CalibrationReport:
    return CalibrationReport.model_construct(
        candidates="the best of each",
        above=AgreementBeforeAfter(before=FEW, after=MANY),
        best=AgreementBeforeAfter(before=MANY, after=MANY),
        reliability_before=list(bins),
        reliability_after=list(bins),
    )


def draw(path: Path, *bins: ReliabilityBin) -> str:
    draw_reliability(report(*bins), path, title="ring, test")
    content = path.read_text("utf-8")
    ET.fromstring(content)
    return content


def test_both_panels_are_drawn_in_the_palettes_colours(tmp_path: Path) -> None:
    drawn = draw(tmp_path / "r.svg", bin_at(0.2, low=0.1, high=0.9), bin_at(0.8))
    assert all(colour in drawn for colour in (BLUE, GREY, ORANGE))
    assert [path.name for path in tmp_path.iterdir()] == ["r.svg"]
    assert (
        report().headline("before")[0] == "probabilities above 0.1: too few candidates to tell (7)"
    )
    assert report().headline()[0] == (
        "probabilities above 0.1: 0.220 on average, a share of 0.150 is true (0.130 to 0.180); "
        "812 candidates, calibration error 0.070"
    )
    assert "<!-- probabilities above 0.1: too few candidates" in drawn


def test_an_interval_is_a_line_more_and_none_is_no_error(tmp_path: Path) -> None:
    without = draw(tmp_path / "a.svg", bin_at(0.2))
    with_one = draw(tmp_path / "b.svg", bin_at(0.2, low=0.1, high=0.9))
    assert with_one.count("LineCollection") == without.count("LineCollection") + 2


def test_no_bins_at_all_are_drawn_too(tmp_path: Path) -> None:
    assert "svg" in draw(tmp_path / "empty.svg")
