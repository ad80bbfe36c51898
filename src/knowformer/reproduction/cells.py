"""What the report's sections are put together from: tables in Markdown and their cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from knowformer.reproduction.experiment import RESULTS_FOLDER
from knowformer.reproduction.summary import NOT_YET, Estimate, Summary

COST = ("seeds", "epochs", "minutes", "MiB", "commit")


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    title: str
    words: list[str]
    table: str
    draw: Callable[[], Path] | None = None
    """Draws the picture; None if there is nothing to show yet."""

    def markdown(self, *, with_picture: bool) -> str:
        """Returns the section; the picture is drawn on the way."""
        lines = [f"## {self.title}\n", *(f"{words}\n" for words in self.words)]
        if self.draw is not None and with_picture:
            picture = self.draw()
            lines.append(f"![{self.title}]({picture.parent.name}/{picture.name})\n")
        return "\n".join([*lines, self.table])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table; the first column is to the left, the others to the right."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, marks, *rows))


def by_group(summaries: list[Summary]) -> dict[str, list[Summary]]:
    """Returns the summaries of each file."""
    groups: dict[str, list[Summary]] = {}
    for summary in summaries:
        groups.setdefault(summary.experiment.group, []).append(summary)
    return groups


def linked(summary: Summary, text: str) -> str:
    """Returns text that links to the results, if there are any."""
    if not summary.results:
        return text
    return f"[{text}]({RESULTS_FOLDER}/{summary.experiment.name})"


def cost_cells(summary: Summary) -> tuple[str, ...]:
    """Returns the cells under ``COST``."""
    count = f"{len(summary.results)}" if summary.results else "-"
    return (count, summary.epochs(), summary.minutes(), summary.memory(), summary.commit())


def speed_cell(summary: Summary) -> str:
    """Returns the mean queries a second in training."""
    speeds = [r.training.queries_per_second for r in summary.results if r.training]
    return f"{fmean(speeds):.1f}" if speeds else "-"


def estimate_cell(estimate: Estimate | None, *, sign: bool = False, absent: str = NOT_YET) -> str:
    """Returns an estimate, or what stands for none."""
    return estimate.text(sign=sign) if estimate else absent


def mean_cell(estimate: Estimate | None) -> str:
    """Returns a mean without its deviation."""
    return f"{estimate.mean:.3f}" if estimate else "-"


def number_cell(value: float | None) -> str:
    """Returns a figure of the paper."""
    return "-" if value is None else f"{value:.3f}"


def signed_cell(value: float | None) -> str:
    """Returns a difference."""
    return "-" if value is None else f"{value:+.3f}"
