"""Reliability diagram: probability against the fraction of true candidates, before and after."""

from math import log10
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from knowformer.evaluation.reliability import CalibrationReport, ReliabilityBin
from knowformer.plots.drawing import drawing, title_of
from knowformer.plots.palette import BLUE, GREY, ORANGE
from knowformer.storage.atomic_files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE_WIDTH = 60  # characters of a panel's title
LARGEST = 220.0  # area of the largest mark, in points


def draw_reliability(report: CalibrationReport, path: Path, *, title: str) -> None:
    """Draws both reliabilities; marks grow with the candidates of a bin, bars are intervals."""
    with drawing():
        figure = _figure(report, title)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=path.suffix.lstrip("."), dpi=150)


def _figure(report: CalibrationReport, title: str) -> "Figure":
    from matplotlib.figure import Figure  # heavy, and an extra: loaded only to draw

    figure = Figure(figsize=(8.4, 5.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    panels = (
        ("the model's own", report.reliability_before, report.headline("before"), GREY),
        ("calibrated", report.reliability_after, report.headline("after"), BLUE),
    )
    for axis, (name, bins, headline, color) in zip(axes, panels, strict=True):
        axis.plot([0, 1], [0, 1], color=ORANGE, linewidth=1, linestyle="--")
        axis.axvline(report.above_probability, color=GREY, linewidth=0.8, linestyle=":")
        mean = [b.mean_probability for b in bins]
        true = [b.share_true for b in bins]
        for each in bins:
            if each.low is not None and each.high is not None:
                axis.vlines(each.mean_probability, each.low, each.high, color=color, alpha=0.6)
        axis.scatter(mean, true, s=[_area(b) for b in bins], color=color, alpha=0.9, zorder=3)
        lines = [fill(phrase, LINE_WIDTH) for phrase in (name, *headline)]
        axis.set_title("\n".join(lines), loc="left", fontsize=8)
        axis.set_xlabel("mean probability of a bin")
        axis.set_xlim(-0.03, 1.03)
        axis.set_ylim(-0.03, 1.03)
        axis.set_aspect("equal")
        for spine in ("top", "right"):
            axis.spines[spine].set_visible(False)
    axes[0].set_ylabel("fraction that is true")
    how = "Larger marks have more candidates; bars are 95 % intervals."
    figure.suptitle(
        f"{title_of(title)}: {report.candidates}\n{how}", x=0.01, ha="left", fontsize=10
    )
    return figure


def _area(one: ReliabilityBin) -> float:
    # From one candidate in ten thousand to all of them: four powers of ten.
    return max(12.0, LARGEST * (1 + log10(max(one.share_of_candidates, 1e-4)) / 4))
