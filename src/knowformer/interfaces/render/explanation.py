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
    NO_CHANGE,
    EvidencePath,
    Explanation,
    ScoreDrop,
    mean_of,
    odds_in_words,
    signed,
)

BAR_WIDTH = 6


def render_explanation(explanation: Explanation, *, by_head: bool = False) -> Group:
    """The answer, its paths, its prototypes if they matter, and what is lost without them."""
    parts: list[RenderableType] = [_headline(explanation), ""]
    parts.append(Text("Paths that speak for the answer", style="bold"))
    if explanation.no_paths is not None:
        parts.append(Padding(explanation.no_paths, (0, 0, 0, 2)))
    else:
        parts.append(_paths_table(explanation))
    parts += _prototypes(explanation)
    if by_head and explanation.heads:
        parts += [Text("Most attended in each layer and head", style="bold"), _heads(explanation)]
    parts.append(Text("How far to trust it: what is lost without all of it", style="bold"))
    parts.append(_faithfulness_table(explanation))
    note = (
        "lost: by how much the probability falls; negative: by how much it rises. Odds: those of "
        "the answer being true."
    )
    parts.append(Text(note, style="dim"))
    return Group(*parts)


def _headline(explanation: Explanation) -> Text:
    line = Text(explanation.question(), style="bold")
    line.append(f" {explanation.labels.entity(explanation.answer)}", style="bold green")
    line.append(f"\n{explanation.place()}", style="not bold")
    if explanation.probability_kind == "model":
        line.append(" (the model's own, not calibrated)", style="dim not bold")
    if explanation.fact_hidden:
        line.append(
            "\nThe fact is in the graph; it was hidden from the model, to find other reasons.",
            style="dim not bold",
        )
    return line


def _paths_table(explanation: Explanation) -> Table:
    table = _plain_table()
    table.add_column("lost", justify="right")
    table.add_column("")
    table.add_column("without it")
    table.add_column("path", overflow="fold")
    most = max(0.1, *(path.loss.truth_log_odds for path in explanation.paths))
    for path in explanation.paths:
        lost = path.loss.truth_log_odds
        table.add_row(
            signed(path.loss.probability),
            _bar(lost / most) if lost > NO_CHANGE else "",
            odds_in_words(lost),
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


def _prototypes(explanation: Explanation) -> list[RenderableType]:
    """The prototypes, or a line that says why they are not worth a table."""
    if explanation.prototypes_matter:
        title = "Prototypes: entities that the answer gains by attending to"
        return [Text(title, style="bold"), _prototypes_table(explanation)]
    reason = explanation.no_prototypes
    for check in explanation.faithfulness:
        if check.evidence == "prototypes":
            reason = (
                f"Prototypes (entities that are attended to) {check.verdict} here: without the "
                f"{check.pieces_in_words} with most effect, "
                f"{odds_in_words(check.loss.truth_log_odds)}."
            )
    return [Text(reason, style="dim"), ""] if reason else []


def _prototypes_table(explanation: Explanation) -> Table:
    table = _plain_table()
    table.add_column("share", justify="right")
    table.add_column("")
    table.add_column("attention", justify="right")
    table.add_column("entity", overflow="fold")
    influences = [prototype.influence for prototype in explanation.prototypes]
    for prototype, influence in zip(explanation.prototypes, influences, strict=True):
        table.add_row(
            f"{influence / sum(influences):.0%}",
            _bar(influence / max(influences)),
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
    for column in ("lost", "rank"):
        table.add_column(column, justify="right")
    table.add_column("in words")
    table.add_column("verdict")
    for check in explanation.faithfulness:
        if check.evidence == "prototypes" and not explanation.prototypes_matter:
            continue
        table.add_row(check.title, *_losses(explanation, [check.loss]), check.verdict, style="bold")
        others = f"  {check.size} random, mean of {len(check.random)}"
        table.add_row(others, *_losses(explanation, check.random), style="dim")
    if explanation.without_attention is not None:
        lost = _losses(explanation, [explanation.without_attention])
        table.add_row("any attention", *lost, style="dim")
    return table


def _losses(explanation: Explanation, drops: list[ScoreDrop]) -> list[str]:
    """Returns the means of some drops: probability lost, the rank then, and the odds in words."""
    rank = explanation.standing.rank_among_all + mean_of(drops, "rank_among_all")
    lost = signed(mean_of(drops, "probability"))
    return [lost, f"{rank:,.0f}", odds_in_words(mean_of(drops, "truth_log_odds"))]


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
        f"Random evidence is as near to the question and drawn {report.num_draws} times; "
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
