"""Explanations and faithfulness reports for people, as tables and lines."""

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from knowformer.explanation.check.faithfulness_report import (
    KINDS,
    MODES,
    FaithfulnessCurve,
    FaithfulnessReport,
    Measure,
)
from knowformer.explanation.explanation import (
    EvidencePath,
    Explanation,
    mean_of,
    odds_left,
)
from knowformer.explanation.show.text import same_decimals

BAR_WIDTH = 12


def render_explanation(explanation: Explanation, *, by_head: bool = False) -> Group:
    """The answer, its paths, its prototypes, and what removing them did."""
    parts: list[RenderableType] = [_headline(explanation), ""]
    parts.append(Text("Paths that speak for the answer", style="bold"))
    if explanation.no_paths is not None:
        parts.append(Padding(explanation.no_paths, (0, 0, 0, 2)))
    else:
        parts.append(_paths_table(explanation))
    parts.append(Text("Prototypes: attended entities that the answer gains by", style="bold"))
    if explanation.no_prototypes is not None:
        parts.append(Padding(explanation.no_prototypes, (0, 0, 0, 2)))
    else:
        parts.append(_prototypes_table(explanation))
    if by_head and explanation.heads:
        parts += [Text("Most attended in each layer and head", style="bold"), _heads(explanation)]
    parts.append(Text("How far to trust it: what the answer loses without it", style="bold"))
    parts.append(_faithfulness_table(explanation))
    return Group(*parts)


def _headline(explanation: Explanation) -> Text:
    here = explanation.standing
    line = Text(explanation.question(), style="bold")
    line.append(f" {explanation.labels.entity(explanation.answer)}", style="bold green")
    line.append(
        f"\nrank {here.rank:,g} of {explanation.num_rivals + 1:,}, score {here.score:.2f}, "
        f"log-odds {here.log_odds:+.2f} against its rivals",
        style="not bold",
    )
    if explanation.fact_hidden:
        line.append(
            "\nThe fact is in the graph; it was hidden from the model, to find other reasons.",
            style="dim not bold",
        )
    return line


def _paths_table(explanation: Explanation) -> Table:
    table = _plain_table()
    table.add_column("weight", justify="right")
    table.add_column("")
    table.add_column("loss alone", justify="right")
    table.add_column("path", overflow="fold")
    most = max(path.weight for path in explanation.paths)
    weights = same_decimals([path.weight for path in explanation.paths])
    for path, weight in zip(explanation.paths, weights, strict=True):
        table.add_row(
            weight,
            _bar(path.weight / most),
            f"{path.loss.log_odds:+.2f}",
            _path_text(explanation, path),
        )
    return table


def _path_text(explanation: Explanation, path: EvidencePath) -> Text:
    labels = explanation.labels
    text = Text(labels.entity(path.steps[0].start), style="cyan")
    for step in path.steps:
        relation = labels.relation(step.relation)
        text.append(f" ←{relation}— " if step.backwards else f" —{relation}→ ", style="default")
        text.append(labels.entity(step.end), style="cyan")
    return text


def _prototypes_table(explanation: Explanation) -> Table:
    table = _plain_table()
    table.add_column("influence", justify="right")
    table.add_column("")
    table.add_column("attention", justify="right")
    table.add_column("entity", overflow="fold")
    most = max(prototype.influence for prototype in explanation.prototypes)
    influences = same_decimals([prototype.influence for prototype in explanation.prototypes])
    for prototype, influence in zip(explanation.prototypes, influences, strict=True):
        table.add_row(
            influence,
            _bar(prototype.influence / most),
            f"{prototype.attention:.2f}x",
            Text(explanation.labels.entity(prototype.entity), style="cyan"),
        )
    return table


def _heads(explanation: Explanation, shown: int = 3) -> Table:
    table = _plain_table()
    table.add_column("layer", justify="right")
    table.add_column("head", justify="right")
    table.add_column("entities, with attention over the mean", overflow="fold")
    for entry in explanation.heads:
        names = [
            f"{explanation.labels.entity(each.entity)} {each.attention:.1f}x"
            for each in entry.entities[:shown]
        ]
        table.add_row(str(entry.layer), str(entry.head), escape(", ".join(names)))
    return table


def _faithfulness_table(explanation: Explanation) -> Table:
    table = _plain_table()
    table.add_column("without", no_wrap=True)
    for column in ("log-odds", "odds left", "rank"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    before = explanation.standing.rank
    for entry in explanation.faithfulness:
        cells = _losses(entry.loss.log_odds, before + entry.loss.rank)
        table.add_row(entry.title, *cells, entry.verdict, style="bold")
        cells = _losses(entry.random_log_odds, before + mean_of(entry.random, "rank"))
        table.add_row(f"  {entry.size} others, mean of {len(entry.random)}", *cells, style="dim")
    if explanation.without_attention is not None:
        loss = explanation.without_attention
        table.add_row("any attention", *_losses(loss.log_odds, before + loss.rank), style="dim")
    return table


def _losses(log_odds: float, rank: float) -> list[str]:
    return [f"{log_odds:+.3f}", odds_left(log_odds), f"{rank:.4g}"]


def render_faithfulness(report: FaithfulnessReport) -> Group:
    """What whole explanations are worth on a test set, and how their first pieces do."""
    title = Text(
        f"{report.dataset}: {report.num_predictions:,} test predictions explained, MRR "
        f"{report.mean_reciprocal_rank:.3f}",
        style="bold",
    )
    parts: list[RenderableType] = [title, ""]
    for mode, does in zip(MODES, ("lost without it", "gained by it alone"), strict=True):
        parts.append(Text(f"{mode.capitalize()}: log-odds {does}, on average", style="bold"))
        parts.append(_curves_table(report, mode, "log_odds"))
        parts.append(Text(f"{mode.capitalize()}: reciprocal rank {does}", style="bold"))
        parts.append(_curves_table(report, mode, "reciprocal_rank"))
    note = (
        f"Random evidence is as near to the question, {report.num_draws} draws each; "
        f"{report.confidence:.0%} bootstrap intervals over predictions. "
        f"{report.seconds_per_explanation:.2f} s to find the evidence for one."
    )
    parts += [Text(f"{'; '.join(report.verdicts())}.", style="bold")]
    made_by = [f"made by: {report.command}"] if report.command else []
    parts += [Text(line, style="dim") for line in [note, *made_by]]
    return Group(*parts)


def _curves_table(report: FaithfulnessReport, mode: str, measure: Measure) -> Table:
    table = _plain_table()
    table.add_column("evidence")
    for column in ("first", "pieces", "named", "random", "difference", "interval", "predictions"):
        table.add_column(column, justify="right")
    chosen = [c for c in report.curves if c.mode == mode and c.measure == measure]
    for curve in sorted(chosen, key=lambda c: KINDS.index(c.evidence)):
        _add_curve(table, curve)
    return table


def _add_curve(table: Table, curve: FaithfulnessCurve) -> None:
    for number, point in enumerate(curve.points):
        last = number == len(curve.points) - 1
        table.add_row(
            curve.evidence if number == 0 else "",
            str(point.size),
            f"{point.pieces:.1f}",
            f"{point.named:+.4f}",
            f"{point.random:+.4f}",
            f"{point.difference:+.4f}",
            f"{point.low:+.4f} to {point.high:+.4f}",
            str(curve.num_predictions) if number == 0 else "",
            end_section=last,
        )


def _plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))


def _bar(fraction: float) -> Text:
    return Text("█" * max(1, round(fraction * BAR_WIDTH)), style="blue")
