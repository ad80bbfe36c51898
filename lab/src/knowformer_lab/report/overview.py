"""What a reader wants first: how many of the paper's figures were met, in a table and a picture."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from knowformer_lab.report.cells import markdown_table
from knowformer_lab.report.pictures import (
    BLUE,
    GREY,
    ORANGE,
    PALE_BLUE,
    figure_of,
    name_marks,
    plain,
    save_picture,
)
from knowformer_lab.report.summary import Summary

NEAR = 0.01  # of MRR or AUROC: what counts as met


class Headline(NamedTuple):
    """The metric that a table of the paper is summed up by, and where it is reported."""

    metric: str
    section: str
    source: str


HEADLINES = {
    "inductive": Headline("mrr", "Inductive", "table 2"),
    "transductive": Headline("mrr", "Transductive", "tables 1 and 3"),
    "homogeneous": Headline("auroc", "Homogeneous link prediction", "appendix, AUROC"),
    "ablation": Headline("mrr", "Ablation", "table 3"),
    "layers": Headline("mrr", "Layers", "appendix"),
}
PICTURED = ("inductive", "transductive", "homogeneous")


def overview(summaries: list[Summary], folder: Path, *, with_picture: bool) -> str:
    """Returns the first part of the report; its picture is drawn on the way."""
    parts = [_sentence(summaries), _table(summaries)]
    shown = [s for s in summaries if s.experiment.table in PICTURED and _difference(s) is not None]
    if shown and with_picture:
        picture = draw_overview(shown, folder / "overview.png")
        parts.append(
            f"![Published figures and ours]({picture.parent.name}/{picture.name})\n\n"
            "Left: the paper's figure and ours, with the standard deviation over seeds where there "
            "are several. Right: ours less the paper's, and a band of "
            f"{NEAR:g} to either side.\n"
        )
    return "\n".join(parts)


def _difference(summary: Summary) -> float | None:
    return summary.difference(HEADLINES[summary.experiment.table].metric)


def _published(summaries: list[Summary]) -> dict[str, list[Summary]]:
    """The experiments with a figure in the paper, by table."""
    by_table = {
        table: [
            s
            for s in summaries
            if s.experiment.table == table and s.published(headline.metric) is not None
        ]
        for table, headline in HEADLINES.items()
    }
    return {table: of_table for table, of_table in by_table.items() if of_table}


def _sentence(summaries: list[Summary]) -> str:
    of_paper = [s for members in _published(summaries).values() for s in members]
    gaps = [gap for s in of_paper if (gap := _difference(s)) is not None]
    if not gaps:
        return "None of the paper's figures has been made again yet.\n"
    met = sum(gap >= -NEAR for gap in gaps)
    return (
        f"**{len(gaps)} of the paper's {len(of_paper)} figures made again, {met} of them met**, "
        f"that is reached or missed by at most {NEAR:g}. A figure is the MRR of one experiment on "
        "test facts, or AUROC where it says so; the paper's hits stand in the sections.\n"
    )


def _table(summaries: list[Summary]) -> str:
    header = (
        "part of the paper",
        "figures",
        "made again",
        "reached",
        f"missed by {NEAR:g} or less",
        "missed by more",
        "mean difference",
        "worst",
    )
    rows: list[Sequence[str]] = []
    for table, members in _published(summaries).items():
        gaps = [gap for s in members if (gap := _difference(s)) is not None]
        cells = ["-"] * 5
        if gaps:
            cells = [
                str(sum(gap >= 0 for gap in gaps)),
                str(sum(-NEAR <= gap < 0 for gap in gaps)),
                str(sum(gap < -NEAR for gap in gaps)),
                f"{fmean(gaps):+z.3f}",
                f"{min(gaps):+z.3f}",
            ]
        has_section = any(s.results for s in summaries if s.experiment.table == table)
        title = _title(HEADLINES[table], linked=has_section)
        rows.append((title, str(len(members)), str(len(gaps)), *cells))
    return markdown_table(header, rows)


def _title(headline: Headline, *, linked: bool) -> str:
    anchor = headline.section.lower().replace(" ", "-")
    name = f"[{headline.section}](#{anchor})" if linked else headline.section
    return f"{name}, {headline.source}"


def draw_overview(summaries: list[Summary], path: Path) -> Path:
    """A line per data set: ours with deviation beside the paper's, and the difference."""
    rows = _rows(summaries)
    figure = figure_of(9.0, 1.3 + 0.27 * -rows[-1])
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    right.axvspan(-NEAR, NEAR, color=PALE_BLUE, alpha=0.35, linewidth=0)
    right.axvline(0, color=ORANGE, linewidth=1)
    for row, summary in zip(rows, summaries, strict=True):
        _draw_line(left, right, row, summary)
    left.set_yticks(rows, [_line_name(summaries, number) for number in range(len(summaries))])
    left.set_ylim(rows[-1] - 0.7, 0.7)
    left.set_xlim(0, 1.02)
    low, high = right.get_xlim()
    right.set_xlim(min(low, -2 * NEAR), max(high, 2 * NEAR))
    left.set_xlabel("test MRR (AUROC for homogeneous)")
    right.set_xlabel("ours less the paper's")
    for axis in (left, right):
        axis.grid(axis="x", color="#eeeeee")
        axis.set_axisbelow(True)
        plain(axis)
    name_marks(figure)
    return save_picture(figure, path)


def _draw_line(left: Any, right: Any, row: float, summary: Summary) -> None:
    name = HEADLINES[summary.experiment.table].metric
    ours, theirs = summary.estimate(name), summary.published(name)
    assert ours is not None
    assert theirs is not None
    left.plot([theirs, ours.mean], [row, row], color=GREY, linewidth=1, zorder=1)
    left.plot(theirs, row, "D", color=ORANGE, markersize=6, zorder=2)
    style = {"fmt": "o", "color": BLUE, "capsize": 3, "zorder": 3}
    left.errorbar(ours.mean, row, xerr=ours.deviation, **style)
    right.errorbar(ours.mean - theirs, row, xerr=ours.deviation, **style)


def _rows(summaries: list[Summary]) -> list[float]:
    """The height of each line, from the top down, with a gap between tables."""
    rows = [0.0]
    for before, summary in pairwise(summaries):
        same = before.experiment.table == summary.experiment.table
        rows.append(rows[-1] - (1.0 if same else 1.6))
    return rows


def _line_name(summaries: list[Summary], number: int) -> str:
    """The data set; the first of each table also names the table."""
    experiment = summaries[number].experiment
    first = number == 0 or summaries[number - 1].experiment.table != experiment.table
    return f"{experiment.table}:  {experiment.group}" if first else experiment.group
