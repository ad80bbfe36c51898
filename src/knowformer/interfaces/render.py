"""Tables and lines for people: what commands print when ``--json`` is not asked for."""

from typing import Any

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from knowformer.evaluation.metrics import HITS_AT, Metrics
from knowformer.evaluation.report import EvaluationReport
from knowformer.reasoner import Answers

METRIC_NAMES = ("mrr", *(f"hits@{k}" for k in HITS_AT), "mr")


def answers_table(answers: Answers) -> Table:
    """Ranked answers to one question."""
    table = Table(title=escape(answers.question()), title_justify="left", title_style="bold")
    table.add_column("rank", justify="right")
    table.add_column(answers.asks_for, overflow="fold")
    table.add_column("probability", justify="right")
    table.add_column("score", justify="right")
    table.add_column("known fact")
    for answer in answers.answers:
        table.add_row(
            str(answer.rank),
            escape(answer.name),
            f"{answer.probability:.3f}",
            f"{answer.score:.2f}",
            "yes" if answer.known else "[bold green]new[/]",
        )
    table.caption = (
        f"{answers.num_candidates:,} candidates, {answers.num_known:,} of them known facts; "
        "probabilities are the model's own, not calibrated"
    )
    table.caption_justify = "left"
    return table


def report_table(report: EvaluationReport) -> Table:
    """Metrics by tie policy, side and relation category, under their protocol."""
    protocol = report.protocol
    table = Table(
        title=escape(
            f"{protocol.dataset}, {protocol.split}: {protocol.num_facts:,} facts asked both ways, "
            f"{protocol.num_candidates:,} candidates"
        ),
        title_justify="left",
        title_style="bold",
    )
    table.add_column("ranks")
    for name in METRIC_NAMES:
        table.add_column(name.upper(), justify="right")
    table.add_row("[bold]realistic[/]", *_cells(report.realistic))
    table.add_row("pessimistic", *_cells(report.pessimistic))
    table.add_row("optimistic", *_cells(report.optimistic), end_section=True)
    table.add_row("head side", *_cells(report.head["realistic"]))
    table.add_row("tail side", *_cells(report.tail["realistic"]), end_section=True)
    for category, row in report.categories.items():
        for side in ("head", "tail"):
            if row["num_facts"]:
                table.add_row(f"{category} {side} ({row['num_facts']:,})", *_cells(row[side]))
    if report.link_prediction:
        table.add_section()
        auroc, precision = (report.link_prediction[n] for n in ("auroc", "average_precision"))
        table.add_row(f"AUROC {auroc:.3f}, average precision {precision:.3f}")
    table.caption = escape(
        f"{protocol.setting}; {protocol.filter}; {protocol.selection}; {report.seconds:.1f} s"
    )
    table.caption_justify = "left"
    return table


def datasets_tables(rows: list[dict[str, Any]]) -> Group:
    """The catalogue, a table per kind of data set."""
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return Group(*(_datasets_table(kind, [r for r in rows if r["kind"] == kind]) for kind in kinds))


def _datasets_table(kind: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=kind, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("name", no_wrap=True, min_width=16)
    for column in ("entities", "relations", "facts", "test"):
        table.add_column(column, justify="right", min_width=9)
    table.add_column("where", no_wrap=True, min_width=11)
    for row in rows:
        facts = row["facts"].get("train", row["facts"].get("edges"))
        table.add_row(
            row["name"],
            f"{row['entities']:,}",
            f"{row['relations']:,}",
            f"{facts:,}",
            f"{row['test_facts']:,}" if row["test_facts"] else "-",
            "embedded" if row["embedded"] else "here" if row["folder"] else "to download",
        )
    return table


def _cells(metrics: Metrics) -> list[str]:
    return [
        f"{metrics[name]:,.1f}" if name == "mr" else f"{metrics[name]:.3f}" for name in METRIC_NAMES
    ]
