"""What a reader wants first: how many of the paper's figures were met, in a picture and a table."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from knowformer_lab.report.cells import markdown_table
from knowformer_lab.report.figures import HEADLINES, NEAR, PaperFigure, State
from knowformer_lab.report.pictures import (
    BLUE,
    ORANGE,
    PALE_BLUE,
    figure_of,
    plain,
    save_picture,
)
from knowformer_lab.report.summary import Summary

STATES: tuple[State, ...] = ("met", "missed", "not run")
COLORS = {"met": BLUE, "missed": ORANGE}
UNPICTURED = ("layers",)  # 27 figures of one data set have a map of their own


def overview(
    figures: list[PaperFigure], summaries: list[Summary], folder: Path, *, with_picture: bool
) -> str:
    """Returns the first part of the report; its picture is drawn on the way."""
    parts = [_sentence(figures)]
    shown = [f for f in figures if f.table not in UNPICTURED and f.ours is not None]
    if shown and with_picture:
        picture = draw_overview(shown, folder / "overview.png")
        parts.append(f"![Ours less the paper's]({picture.parent.name}/{picture.name})\n")
    parts.append(_table(figures, summaries))
    return "\n".join(parts)


def _sentence(figures: list[PaperFigure]) -> str:
    made = [figure for figure in figures if figure.ours is not None]
    if not made:
        return "None of the paper's figures has been made again yet.\n"
    met = sum(figure.state == "met" for figure in made)
    return (
        f"**{len(made)} of the paper's {len(figures)} figures made again, {met} of them met**: "
        f"reached, or missed by at most {NEAR:g}. A figure is the test MRR of one experiment, or "
        "its AUROC where that is said.\n"
    )


def _table(figures: list[PaperFigure], summaries: list[Summary]) -> str:
    header = ("part of the paper", "figures", *STATES, "worst", "core hours for the rest")
    rows: list[Sequence[str]] = []
    for table, headline in HEADLINES.items():
        members = [figure for figure in figures if figure.table == table]
        if not members:
            continue
        gaps = [figure.difference for figure in members if figure.difference is not None]
        has_section = any(s.results for s in summaries if s.experiment.table == table)
        anchor = headline.section.lower().replace(" ", "-")
        title = f"[{headline.section}](#{anchor})" if has_section else headline.section
        rows.append(
            (
                f"{title}, {headline.source}",
                str(len(members)),
                *(str(sum(figure.state == state for figure in members)) for state in STATES),
                f"{min(gaps):+z.3f}" if gaps else "-",
                hours_left(members),
            )
        )
    return markdown_table(header, rows)


def hours_left(figures: list[PaperFigure]) -> str:
    """Returns the estimated core hours of all seeds without a result."""
    known = [left for f in figures if (left := f.core_minutes_left) is not None]
    if not known:
        return "-"
    more = "more than " if len(known) < len(figures) else ""
    return f"{more}{sum(known) / 60:.1f}"


def draw_overview(figures: list[PaperFigure], path: Path) -> Path:
    """A line per figure: ours less the paper's, blue where it is met; both figures to the right."""
    rows = _rows(figures)
    figure = figure_of(8.0, 1.0 + 0.25 * -rows[-1])
    axis = figure.add_subplot()
    axis.axvspan(-NEAR, NEAR, color=PALE_BLUE, alpha=0.35, linewidth=0)
    axis.axvline(0, color="black", linewidth=1)
    for row, each in zip(rows, figures, strict=True):
        _draw_line(axis, row, each)
    names = [_line_name(figures, number) for number in range(len(figures))]
    axis.set_yticks(rows, names)
    axis.set_ylim(rows[-1] - 0.7, 1.4)
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, -2 * NEAR), max(high, 2 * NEAR))
    _write(axis, 1.0, "ours    paper")
    for state, color in COLORS.items():
        axis.plot([], [], "o", color=color, label=state)
    axis.legend(loc="lower right", frameon=False)
    axis.set_xlabel(f"ours less the paper's; band: {NEAR:g} to either side; bars: deviation")
    axis.grid(axis="x", color="#eeeeee")
    axis.set_axisbelow(True)
    plain(axis)
    return save_picture(figure, path)


def _draw_line(axis: Any, row: float, each: PaperFigure) -> None:
    assert each.ours is not None
    color = COLORS[each.state]
    deviation = each.ours.deviation
    axis.errorbar(each.difference, row, xerr=deviation, fmt="o", color=color, capsize=3, zorder=3)
    _write(axis, row, f"{each.ours.mean:.3f}   {each.paper:.3f}")


def _write(axis: Any, row: float, text: str) -> None:
    """Writes to the right of the frame."""
    place = axis.get_yaxis_transform()
    axis.text(1.02, row, text, transform=place, va="center", fontsize=9, family="monospace")


def _rows(figures: list[PaperFigure]) -> list[float]:
    """The height of each line, from the top down, with a gap between parts of the paper."""
    rows = [0.0]
    for before, after in pairwise(figures):
        rows.append(rows[-1] - (1.0 if before.table == after.table else 1.6))
    return rows


def _line_name(figures: list[PaperFigure], number: int) -> str:
    """The data set, and the variant; the first of each part also names the part."""
    experiment = figures[number].summary.experiment
    variant = f", {experiment.variant.replace('_', ' ')}" if experiment.variant else ""
    name = f"{experiment.group}{variant}"
    first = number == 0 or figures[number - 1].table != experiment.table
    return f"{experiment.table}:  {name}" if first else name
