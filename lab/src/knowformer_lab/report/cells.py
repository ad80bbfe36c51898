"""What the report's sections are put together from: tables in Markdown and their cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from knowformer_lab.experiment import RESULTS_FOLDER
from knowformer_lab.report.summary import NOT_YET, Estimate, Summary

MOST_NAMED = 6  # variants; more are counted
COST = ("seeds", "epochs", "minutes", "MiB", "commit")


@dataclass(frozen=True)
class Section:
    """A part of the report; it shows what has results, not what is yet to run."""

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
        return "\n".join([*lines, *([self.table] if self.table else [])])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> str:
    """Returns a table: so many columns of names to the left, figures to the right; or nothing."""
    if not rows:
        return ""
    marks = [*["---"] * names, *["---:"] * (len(header) - names)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, marks, *rows))


def by_group(summaries: list[Summary]) -> dict[str, list[Summary]]:
    """Returns the summaries of each file."""
    groups: dict[str, list[Summary]] = {}
    for summary in summaries:
        groups.setdefault(summary.experiment.group, []).append(summary)
    return groups


def with_results(summaries: list[Summary]) -> list[Summary]:
    """Returns those that have a result."""
    return [summary for summary in summaries if summary.results]


def not_yet_run(summaries: list[Summary]) -> str:
    """Returns the experiments without a result in a line, those of a file together."""
    parts: list[str] = []
    for group, members in by_group(summaries).items():
        waiting = [summary for summary in members if not summary.results]
        if not waiting:
            continue
        if not waiting[0].experiment.variant:
            published = waiting[0].experiment.published
            first = next(iter(published.metrics.values()), None) if published else None
            parts.append(group if first is None else f"{group} (paper {first:.3f})")
        elif len(waiting) == len(members):
            parts.append(f"{group} ({len(members)} variants)")
        elif len(waiting) > MOST_NAMED:
            parts.append(f"{group} ({len(waiting)} of {len(members)} variants)")
        else:
            names = ", ".join(s.experiment.variant.replace("_", " ") for s in waiting)
            parts.append(f"{group} ({names})")
    return "; ".join(parts)


def linked(summary: Summary, text: str) -> str:
    """Returns text that links to the results, if there are any."""
    if not summary.results:
        return text
    return f"[{text}]({RESULTS_FOLDER}/{summary.experiment.name})"


def cost_cells(summary: Summary) -> tuple[str, ...]:
    """Returns the cells under ``COST``."""
    done, wanted = len(summary.results), len(summary.experiment.seeds)
    count = f"{done}" if done >= wanted else f"{done} of {wanted}"
    return (count, summary.epochs(), summary.minutes(), summary.memory(), summary.commit())


def speed_cell(summary: Summary) -> str:
    """Returns the mean queries a second in training."""
    speeds = [r.training.queries_per_second for r in summary.results if r.training]
    return f"{fmean(speeds):.1f}" if speeds else "-"


def estimate_cell(estimate: Estimate | None, *, sign: bool = False, absent: str = NOT_YET) -> str:
    """Returns an estimate, or the text for none."""
    return estimate.text(sign=sign) if estimate else absent


def mean_cell(estimate: Estimate | None) -> str:
    """Returns a mean without its deviation."""
    return f"{estimate.mean:.3f}" if estimate else "-"


def number_cell(value: float | None) -> str:
    """Returns a figure of the paper."""
    return "-" if value is None else f"{value:.3f}"


def signed_cell(value: float | None) -> str:
    """Returns a difference."""
    return "-" if value is None else f"{value:+z.3f}"


def counted(count: int, noun: str) -> str:
    """Returns a number of things: one seed, two seeds."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
