"""The report's section with a row for every figure of the paper."""

from collections.abc import Sequence

from knowformer_lab.report.cells import Section, linked, markdown_table, number_cell, signed_cell
from knowformer_lab.report.figures import NEAR, PaperFigure
from knowformer_lab.report.overview import hours_left

HEADER = (
    "figure",
    "state",
    "why",
    "paper",
    "ours",
    "95% interval",
    "difference",
    "seeds",
    "core minutes a seed",
    "core hours left",
)


def every_figure(figures: list[PaperFigure]) -> Section:
    """A row for each: what it is, what we have, how long it took, what is left."""
    words = [
        f"*Met* is reached or missed by at most {NEAR:g}. The interval is Student's t over seeds; "
        "one seed has none. Core minutes are minutes times threads, of training and evaluation, "
        "on the machines named above, which did other work too. *Core hours left* is what the "
        "missing seeds would cost. **That is an estimate**: the minutes of the stored run most "
        "like it, in proportion to queries, edges that a query sees and hops; it is good to a "
        "factor of two.",
        f"What is left takes about {hours_left(figures)} core hours, "
        f"{hours_left([f for f in figures if f.ours is None])} of them for figures not run at all.",
    ]
    rows: list[Sequence[str]] = [_row(figure) for figure in figures]
    return Section("Every figure", words, markdown_table(HEADER, rows, names=3))


def _row(figure: PaperFigure) -> list[str]:
    summary, ours = figure.summary, figure.ours
    experiment = summary.experiment
    done, wanted = len(summary.results), len(experiment.seeds)
    spent = summary.core_minutes()
    left = figure.core_minutes_left
    return [
        linked(summary, experiment.name),
        f"**{figure.state}**" if figure.state == "missed" else figure.state,
        (experiment.note or "-") if figure.state != "met" else "-",
        number_cell(figure.paper),
        ours.text() if ours else "-",
        f"{ours.interval[0]:.3f} to {ours.interval[1]:.3f}" if ours and ours.interval else "-",
        signed_cell(figure.difference),
        f"{done} of {wanted}" if done < wanted else str(done),
        "-" if spent is None else f"{spent:.0f}",
        _left(figure, left),
    ]


def _left(figure: PaperFigure, left: float | None) -> str:
    if left is None:
        return "not known"
    if not left:
        return "-"
    like = figure.cost.like if figure.cost else ""
    own = like == figure.summary.experiment.name
    return f"{left / 60:.1f}" if own else f"{left / 60:.1f}, like {like}"
