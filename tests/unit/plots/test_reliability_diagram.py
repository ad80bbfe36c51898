import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from knowformer.calibration.reliability import BeforeAfter, CalibrationReport, ReliabilityBin
from knowformer.plots.learning_curve import can_draw
from knowformer.plots.palette import BLUE, GREY, ORANGE
from knowformer.plots.reliability_diagram import draw_reliability

pytestmark = pytest.mark.skipif(not can_draw(), reason="matplotlib is not installed")


def bin_at(probability: float, **interval: float) -> ReliabilityBin:
    return ReliabilityBin(
        mean_probability=probability, share_true=0.5, share_of_candidates=0.1, **interval
    )


def report(*bins: ReliabilityBin) -> CalibrationReport:
    return CalibrationReport.model_construct(
        candidates="the best of each",
        expected_calibration_error=BeforeAfter(before=0.25, after=0.01),
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


def test_an_interval_is_a_line_more_and_none_is_no_error(tmp_path: Path) -> None:
    without = draw(tmp_path / "a.svg", bin_at(0.2))
    with_one = draw(tmp_path / "b.svg", bin_at(0.2, low=0.1, high=0.9))
    assert with_one.count("LineCollection") == without.count("LineCollection") + 2


def test_no_bins_at_all_are_drawn_too(tmp_path: Path) -> None:
    assert "svg" in draw(tmp_path / "empty.svg")
