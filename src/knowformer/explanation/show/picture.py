"""Pictures: an explanation with its paths and prototypes, and the curves of a report."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from knowformer.errors import ConfigError, require_package
from knowformer.explanation.check.faithfulness_report import (
    KINDS,
    MODES,
    FaithfulnessCurve,
    FaithfulnessReport,
)
from knowformer.explanation.explanation import (
    CARRIES,
    EvidenceKind,
    Explanation,
    ScoreDrop,
    mean_of,
    odds_in_words,
    signed,
)
from knowformer.explanation.show.label_places import Box, place_labels
from knowformer.explanation.show.path_layout import PathLayout, PlacedFact, Point, lay_out, smooth
from knowformer.explanation.show.text import shorten
from knowformer.plots.drawing import drawing
from knowformer.plots.palette import BLUE, GREY, INK, ORANGE, PALE
from knowformer.storage.atomic_files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_INCHES = 3.1  # from one entity to the next: both names and the relation's fit
ROW_INCHES = 0.8
ENTITY_WIDTH, RELATION_WIDTH = 20, 16  # characters on a line

FORMATS = (".svg", ".png", ".pdf")


def check_picture(path: Path) -> None:
    """Checks that a picture can be drawn, before any work is done.

    Raises:
        ConfigError: the file's ending is none that matplotlib draws.
        MissingPackageError: matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"Expected a picture's name to end in {', '.join(FORMATS)}, got {str(path)!r}."
        )
    require_package("matplotlib", extra="plots", purpose="draw a picture")


def draw_explanation(explanation: Explanation, path: Path) -> None:
    """Draws the paths from left to right, the prototypes as bars, and what removal cost."""
    with drawing():
        _save(_explanation_figure(explanation), path)


def _explanation_figure(explanation: Explanation) -> "Figure":
    from matplotlib.figure import Figure  # heavy, and an extra: loaded only to draw

    layout = lay_out(explanation.paths, explanation.asked_from, explanation.answer)
    paths_height = 0.9 + ROW_INCHES * layout.num_rows if explanation.paths else 0.8
    shown = explanation.prototypes if explanation.prototypes_matter else []
    bars_height = 0.9 + 0.24 * max(4, len(shown))
    width = max(9.5, COLUMN_INCHES * (layout.num_columns - 1) + 2.2)
    figure = Figure(figsize=(width, paths_height + bars_height + 0.7), layout="constrained")
    heights = [paths_height, bars_height]
    above, below = figure.subfigures(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_paths(above.add_subplot(), explanation, layout)
    left, right = below.subplots(1, 2)
    _draw_losses(left, explanation)
    if shown:
        _draw_prototypes(right, explanation)
    else:
        right.set_axis_off()
    question = f"{explanation.question()}  {explanation.labels.entity(explanation.answer)}"
    figure.suptitle(
        "\n".join(textwrap.wrap(question, round(11 * width))) + f"\n{explanation.place()}",
        fontsize=11,
        color=INK,
        x=0.01,
        ha="left",
    )
    return figure


def _draw_paths(axis: "Axes", explanation: Explanation, layout: PathLayout) -> None:
    axis.set_axis_off()
    axis.set_title("Paths that speak for the answer", loc="left", fontsize=10)
    if explanation.no_paths is not None:
        text = "\n".join(textwrap.wrap(explanation.no_paths, 110))
        axis.text(0.0, 0.5, text, fontsize=9, color=INK, va="center")
        return
    axis.set_title("thickness is weight, arrows go from head to tail", loc="right", fontsize=8)
    labels = explanation.labels
    most = max(fact.weight for fact in layout.facts)
    lines = [_pointing_line(fact) for fact in layout.facts]
    names = [shorten(labels.relation(fact.relation), RELATION_WIDTH) for fact in layout.facts]
    entities = [
        _box(at, shorten(labels.entity(name), ENTITY_WIDTH), 8.5, padding=0.1)
        for name, at in layout.entities.items()
    ]
    sizes = [_box(line[0], name, 7.5)[1:] for line, name in zip(lines, names, strict=True)]
    places = place_labels(lines, sizes, entities)
    for fact, line in zip(layout.facts, lines, strict=True):
        _draw_line(axis, line, strength=fact.weight / most)
    for name, place in zip(names, places, strict=True):
        _draw_name(axis, name, place)
    ends = {explanation.asked_from: BLUE, explanation.answer: ORANGE}
    for name, (x, y) in layout.entities.items():
        color = ends.get(name, INK)
        axis.text(
            x,
            -y,
            shorten(labels.entity(name), ENTITY_WIDTH),
            ha="center",
            va="center",
            fontsize=8.5,
            color=color,
            fontweight="bold" if name in ends else "normal",
            bbox={"boxstyle": "round,pad=0.35", "facecolor": PALE, "edgecolor": color},
            zorder=4,
        )
    axis.set_xlim(-0.3, layout.num_columns - 0.7)
    lowest = max([0.0, *(abs(y) for fact in layout.facts for _, y in fact.points)])
    axis.set_ylim(-lowest - 0.6, lowest + 0.6)


def _pointing_line(fact: PlacedFact) -> list[Point]:
    """A smooth line through the fact's points, from its head to its tail."""
    line = smooth(fact.points)
    return line[::-1] if fact.backwards else line


def _box(middle: Point, text: str, points: float, padding: float = 0.02) -> Box:
    """Returns about what a text covers, in columns and rows; ``padding`` is in inches."""
    lines, inches = text.split("\n"), points / 72
    width = 0.58 * inches * max(map(len, lines)) + padding
    height = 1.25 * inches * len(lines) + padding
    return Box(middle, width / COLUMN_INCHES, height / ROW_INCHES)


def _draw_line(axis: "Axes", line: list[Point], *, strength: float) -> None:
    axis.plot(
        [x for x, _ in line],
        [-y for _, y in line],
        color=BLUE,
        alpha=0.35 + 0.4 * strength,
        linewidth=0.8 + 4.0 * strength,
        solid_capstyle="round",
        zorder=1,
    )
    # Between the name and the entity that the fact points to.
    at = round(0.74 * len(line))
    tip, behind = line[at], line[at - 1]
    axis.annotate(
        "",
        xy=(tip.x, -tip.y),
        xytext=(behind.x, -behind.y),
        arrowprops={"arrowstyle": "-|>", "color": BLUE, "lw": 0.8, "mutation_scale": 13},
        zorder=2,
    )


def _draw_name(axis: "Axes", name: str, at: Point) -> None:
    axis.text(
        at.x,
        -at.y,
        name,
        ha="center",
        va="center",
        fontsize=7.5,
        color=INK,
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        zorder=3,
    )


def _draw_prototypes(axis: "Axes", explanation: Explanation) -> None:
    axis.set_title("Prototypes: share in what attention does", loc="left", fontsize=10)
    shown = explanation.prototypes
    rows = range(len(shown))
    axis.barh(rows, [each.influence for each in shown], color=BLUE, height=0.68)
    names = [shorten(explanation.labels.entity(each.entity), 34, lines=1) for each in shown]
    axis.set_yticks(rows, names, fontsize=8)
    total = sum(each.influence for each in shown)
    for row, each in zip(rows, shown, strict=True):
        text = f" {each.influence / total:.0%}  (attention {each.attention:.1f}x)"
        axis.text(each.influence, row, text, va="center", fontsize=7.5, color=INK)
    axis.set_xlim(0, 1.55 * max(each.influence for each in shown))
    axis.invert_yaxis()
    axis.set_xticks([])
    _bare(axis, "left")


def _draw_losses(axis: "Axes", explanation: Explanation) -> None:
    axis.set_title("Lost without the evidence (bars: log-odds)", loc="left", fontsize=10)
    checks = [
        check
        for check in explanation.faithfulness
        if check.evidence != "prototypes" or explanation.prototypes_matter
    ]
    names: list[str] = []
    for check in checks:
        row = 2.6 * (len(names) // 2)
        _draw_loss(axis, row, [check.loss], BLUE)
        _draw_loss(axis, row + 1, check.random, GREY)
        names += [f"{check.title}\n{check.verdict}", "others at random"]
    places = [2.6 * (number // 2) + number % 2 for number in range(len(names))]
    axis.set_yticks(places, names, fontsize=8)
    axis.axvline(0, color=INK, linewidth=0.8)
    axis.tick_params(axis="x", labelsize=8)
    axis.set_ylim(4.2 if len(checks) > 1 else 1.6, -0.6)
    low, high = axis.get_xlim()
    high = max(high, CARRIES)  # small losses look small
    axis.set_xlim(low, high + 0.8 * (high - low))  # room for words behind the bars
    _bare(axis, "bottom")
    if not names:
        axis.set_axis_off()


def _draw_loss(axis: "Axes", row: float, drops: list[ScoreDrop], color: str) -> None:
    lost = [drop.truth_log_odds for drop in drops]
    mean = mean_of(drops, "truth_log_odds")
    axis.barh(row, mean, color=color, height=0.8)
    if len(lost) > 1:
        axis.plot(lost, [row] * len(lost), "|", color=INK, markersize=7)
    words = f"  lost {signed(mean_of(drops, 'probability'))}, {odds_in_words(mean)}"
    axis.text(max(0.0, *lost, mean), row, words, va="center", fontsize=7.5, color=INK)


def draw_curves(report: FaithfulnessReport, path: Path) -> None:
    """Draws deletion and insertion curves of each kind of evidence, named beside random."""
    with drawing():
        _save(_curves_figure(report), path)


def _curves_figure(report: FaithfulnessReport) -> "Figure":
    from matplotlib.figure import Figure  # heavy, and an extra: loaded only to draw

    drawn = {curve.evidence for curve in report.curves}
    kinds: list[EvidenceKind] = [kind for kind in KINDS if kind in drawn]
    figure = Figure(figsize=(max(4.4, 3.7 * len(kinds)), 6.2), layout="constrained")
    axes = figure.subplots(2, max(1, len(kinds)), squeeze=False)
    for column, kind in enumerate(kinds):
        for row, mode in enumerate(MODES):
            curve = report.curve(kind, mode, "log_odds")
            if curve is not None:
                _draw_curve(axes[row][column], curve, with_legend=row == column == 0)
    figure.suptitle(
        f"{report.dataset}: {report.num_predictions:,} test predictions explained",
        fontsize=11,
        color=INK,
        x=0.01,
        ha="left",
    )
    return figure


def _draw_curve(axis: "Axes", curve: FaithfulnessCurve, *, with_legend: bool) -> None:
    verb = "lost" if curve.mode == "deletion" else "gained"
    sizes = [0, *(point.size for point in curve.points)]
    axis.plot(
        sizes, [0.0, *(p.random for p in curve.points)], color=GREY, marker="o", label="random"
    )
    axis.plot(sizes, [0.0, *(p.named for p in curve.points)], color=BLUE, marker="o", label="named")
    # The interval is that of the difference, so it is drawn above random.
    low = [0.0, *(point.random + point.low for point in curve.points)]
    high = [0.0, *(point.random + point.high for point in curve.points)]
    axis.fill_between(sizes, low, high, color=BLUE, alpha=0.18, linewidth=0)
    axis.axhline(0, color=INK, linewidth=0.6)
    axis.set_title(f"{curve.evidence}, {curve.mode}", loc="left", fontsize=10)
    axis.set_xlabel("paths" if curve.evidence == "paths" else "entities", fontsize=9)
    axis.set_ylabel(f"log-odds {verb}", fontsize=9)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if with_legend:
        axis.legend(frameon=False, fontsize=8)


def _bare(axis: "Axes", kept: str) -> None:
    for side, spine in axis.spines.items():
        spine.set_visible(side == kept)
    axis.tick_params(axis="y", length=0)


def _save(figure: "Figure", path: Path) -> None:
    with atomic_path(path) as temporary:
        ending = path.suffix.lower().lstrip(".")
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
        figure.savefig(temporary, format=ending, dpi=150, metadata=undated)
