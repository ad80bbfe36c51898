"""The report's sections on the paper's tables: words, a picture, a short table."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from knowformer_lab.report import pictures
from knowformer_lab.report.cells import (
    COST,
    Section,
    by_group,
    cost_cells,
    counted,
    estimate_cell,
    linked,
    markdown_table,
    mean_cell,
    number_cell,
    signed_cell,
    speed_cell,
    with_results,
)
from knowformer_lab.report.figures import NEAR
from knowformer_lab.report.summary import Estimate, Summary, paired
from knowformer_lab.results import Result


def inductive(summaries: list[Summary], folder: Path) -> Section:
    """Table 2."""
    words = [
        "A model is trained on one graph and answers on another that shares its relations and "
        "none of its entities (table 2 of the paper). Candidates and filter are those of the test "
        "graph.",
        *_against_paper(summaries),
    ]
    del folder  # pictured in the overview
    return Section("Inductive", words, ranking_table(summaries))


def transductive(summaries: list[Summary], folder: Path) -> Section:
    """Table 1, and small graphs."""
    ranked = [s for s in summaries if s.experiment.kind == "ranking"]
    measured = [s for s in summaries if s.experiment.kind == "validation"]
    words = [
        "Held-out facts of the graph that was trained on (table 1; UMLS: table 3). The "
        "curves show how far the runs were from flat, with a "
        "star at the weights that were chosen. Validation MRR lies well below test MRR where a "
        "graph is dense, for true answers among the test facts stay among its candidates. "
        "*Last gain* is what it rose in the last fifth of the time. The paper does not report "
        "Family, Kinship and Nations.",
        *_against_paper(ranked),
    ]
    table = ranking_table(ranked, extra=("last gain", _last_gain))
    if with_results(measured):
        table += "\nMemory and speed at a larger scale, validation only:\n\n" + speed_table(
            measured
        )
    shown = paper_first(with_results(summaries))
    draw = (lambda: pictures.draw_curves(shown, folder / "transductive.png")) if shown else None
    return Section("Transductive", words, table, draw)


def ablation(summaries: list[Summary], folder: Path) -> Section:
    """Table 3."""
    groups = by_group(summaries)
    words = [
        "One part of the model is taken away at a time (table 3). *From full* is the difference "
        "from the full model under the same seed, so that the seeds' own luck cancels.",
        *_attention_gains(groups),
    ]
    header = ("data set", "variant", "paper", "ours", "from full", "paper's from full", *COST)
    rows: list[Sequence[str]] = []
    for group, members in groups.items():
        base = next(s for s in members if s.experiment.variant == "full")
        for summary in with_results(members):
            gap = paired(summary, base) if summary is not base else None
            ours, theirs = summary.published("mrr"), base.published("mrr")
            paper_gap = f"{ours - theirs:+z.3f}" if ours and theirs and summary is not base else "-"
            rows.append(
                (
                    linked(summary, group),
                    summary.experiment.variant.replace("_", " "),
                    number_cell(ours),
                    estimate_cell(summary.estimate("mrr")),
                    gap.text(sign=True) if gap else "-",
                    paper_gap,
                    *cost_cells(summary),
                )
            )
    ready = {g: m for g, m in groups.items() if any(s.results for s in m)}
    draw = (lambda: pictures.draw_ablation(ready, folder / "ablation.png")) if ready else None
    return Section("Ablation", words, markdown_table(header, rows, names=2), draw)


def layers(summaries: list[Summary], folder: Path) -> Section:
    """The appendix's table of layers."""
    maps: dict[str, dict[str, float]] = {}
    rows: list[Sequence[str]] = []
    for group, members in by_group(summaries).items():
        estimates = {s.experiment.variant: s.estimate("mrr") for s in members}
        ours = {name: estimate.mean for name, estimate in estimates.items() if estimate}
        theirs = {s.experiment.variant: s.published("mrr") for s in members}
        paper = {name: value for name, value in theirs.items() if value is not None}
        for title, scores in ((f"{group}, ours", ours), (f"{group}, paper", paper)):
            if scores:
                maps[title] = scores
                minutes = _total_minutes(members) if scores is ours else "-"
                rows.append((title, str(len(scores)), *_layer_cells(scores), minutes))
    words = [
        "Test MRR for 1 to 3 attention layers (L), hops of the query stream (Q) and hops of the "
        "value stream (V). The paper reports WN18RR; the split WN18RR v1 is small enough to run "
        "whole. *By L* is the mean over a map's cells with 1, 2 and 3 attention layers; *by Q* "
        "and *by V* likewise.",
    ]
    header = (
        "data set",
        "cells",
        "best",
        "L3 Q2 V3, as published",
        "L2 Q1 V3",
        *(f"by {axis}: 1, 2, 3" for axis in "LQV"),
        "minutes in all",
    )
    draw = (lambda: pictures.draw_layers(maps, folder / "layers.png")) if maps else None
    return Section("Layers", words, markdown_table(header, rows), draw)


def _layer_cells(scores: Mapping[str, float]) -> list[str]:
    """The best of a map, two cells of interest, and means along its axes."""
    best = max(scores, key=lambda name: scores[name])
    means: list[str] = []
    for axis in "LQV":
        of_count = [
            [score for name, score in scores.items() if f"{axis}{count}" in name.split("_")]
            for count in (1, 2, 3)
        ]
        means.append(", ".join(f"{fmean(each):.3f}" if each else "-" for each in of_count))
    return [
        f"{scores[best]:.3f}, {best.replace('_', ' ')}",
        number_cell(scores.get("L3_Q2_V3")),
        number_cell(scores.get("L2_Q1_V3")),
        *means,
    ]


def homogeneous(summaries: list[Summary], folder: Path) -> Section:
    """The appendix's link prediction."""
    words = [
        "Graphs with one kind of link, structure alone (the paper's appendix). Links are split "
        "85/5/10 at random, by the seed, and as many pairs that are not linked are drawn for "
        "validation and for the test; a pair's score is the mean from its two ends.",
        "*Pairs* is NBFNet's protocol, which the paper follows: a classifier of pairs, with an "
        "unlinked pair, both ends at random, for each link, and weights chosen by validation "
        "AUROC. *Candidates* is that of knowledge graphs: all entities compete for the other end "
        "of a link, and weights are chosen by validation MRR. It leaves each head an offset of its "
        "own, and pairs of different heads are what AUROC compares. NBFNet splits the raw lists of "
        "directed edges, in which some links stand twice; here each stands once.",
        *_against_paper(summaries, "auroc"),
    ]
    header = (
        "data set",
        "protocol",
        "paper's AUROC",
        "ours",
        "difference",
        "paper's AP",
        "ours",
        "difference",
        *COST,
    )
    groups = by_group(summaries)
    rows = [
        (
            linked(s, s.experiment.group),
            s.experiment.variant or "-",
            *_beside_paper(s, groups[s.experiment.group], "auroc"),
            *_beside_paper(s, groups[s.experiment.group], "average_precision"),
            *cost_cells(s),
        )
        for s in with_results(summaries)
    ]
    del folder  # pictured in the overview
    return Section("Homogeneous link prediction", words, markdown_table(header, rows, names=2))


def _beside_paper(summary: Summary, group: list[Summary], name: str) -> tuple[str, str, str]:
    """The paper's figure, which one run of the file stands for, ours, and the difference."""
    published = [value for s in group if (value := s.published(name)) is not None]
    theirs, ours = next(iter(published), None), summary.estimate(name)
    gap = ours.mean - theirs if ours and theirs is not None else None
    return number_cell(theirs), estimate_cell(ours, absent="-"), signed_cell(gap)


def views(summaries: list[Summary], folder: Path) -> Section:
    """A part of the graph for each query against the whole graph."""
    words = [
        "What seeing a part of the graph is worth at equal time: the same model, seed and minutes, "
        "on the whole graph and in views. *Inside* is the fraction of the answers that their query "
        "sees; the others rank below all that it sees. Where the whole graph takes too long to "
        "be asked for every test fact, both are compared by validation facts.",
    ]
    header = ("data set", "a query sees", "validation MRR", "MRR", "hits@1", "hits@10", "inside")
    header = (*header, "queries/s", *COST)
    rows = [
        (
            linked(s, s.experiment.group),
            s.experiment.variant,
            mean_cell(s.estimate("valid_mrr")),
            estimate_cell(s.estimate("mrr"), absent="-"),
            *(mean_cell(s.estimate(name)) for name in ("hits@1", "hits@10")),
            mean_cell(s.estimate(_coverage)),
            speed_cell(s),
            *cost_cells(s),
        )
        for s in with_results(summaries)
    ]
    del folder  # a table says it all
    return Section("Views", words, markdown_table(header, rows, names=2))


def _coverage(result: Result) -> float | None:
    report = result.evaluation
    if report is None:
        return None
    return report.view.coverage if report.view else 1.0


def paper_first(summaries: list[Summary]) -> list[Summary]:
    """Returns those that the paper reports, then the others."""
    return sorted(summaries, key=lambda summary: summary.published("mrr") is None)


def ranking_table(
    summaries: list[Summary], extra: tuple[str, Callable[[Summary], str]] | None = None
) -> str:
    """MRR and hits beside the paper's, and the cost."""
    header = [
        "data set",
        "paper's MRR",
        "ours",
        "difference",
        "hits@1 (paper)",
        "hits@10 (paper)",
        *([extra[0]] if extra else []),
        *COST,
    ]
    rows = [
        (
            linked(s, s.experiment.group),
            number_cell(s.published("mrr")),
            estimate_cell(s.estimate("mrr")),
            signed_cell(s.difference("mrr")),
            *(
                f"{mean_cell(s.estimate(k))} ({number_cell(s.published(k))})"
                for k in ("hits@1", "hits@10")
            ),
            *([extra[1](s)] if extra else []),
            *cost_cells(s),
        )
        for s in paper_first(with_results(summaries))
    ]
    return markdown_table(header, rows)


def speed_table(summaries: list[Summary]) -> str:
    """Cost alone."""
    header = ("data set", "validation MRR", "queries/s in training", *COST)
    rows = [
        (
            linked(s, s.experiment.group),
            estimate_cell(s.estimate("valid_mrr")),
            speed_cell(s),
            *cost_cells(s),
        )
        for s in with_results(summaries)
    ]
    return markdown_table(header, rows)


def _against_paper(summaries: list[Summary], name: str = "mrr") -> list[str]:
    gaps = [gap for s in summaries if (gap := s.difference(name)) is not None]
    if not gaps:
        return []
    near = sum(gap >= -NEAR for gap in gaps)
    extremes = f"; differences run from {min(gaps):+z.3f} to {max(gaps):+z.3f}" if gaps[1:] else ""
    return [
        f"**The paper's {name.upper()} is met on {near} of {len(gaps)} data sets**, that is "
        f"reached or missed by at most {NEAR:g}{extremes}."
    ]


def _attention_gains(groups: dict[str, list[Summary]]) -> list[str]:
    gains: list[str] = []
    for group, members in groups.items():
        by_name = {summary.experiment.variant: summary for summary in members}
        gain = paired(by_name["full"], by_name["no_attention"])
        if gain is not None:
            gains.append(f"{group} {gain.text(sign=True)} ({counted(gain.count, 'seed')})")
    return [f"**Attention's gain in MRR:** {'; '.join(gains)}."] if gains else []


def _last_gain(summary: Summary) -> str:
    gains: list[float] = []
    for result in summary.results:
        points = result.training.validations if result.training else []
        before = [p.mrr for p in points if p.minutes <= 0.8 * points[-1].minutes]
        if before:
            gains.append(points[-1].mrr - before[-1])
    estimate = Estimate.of(gains)
    return f"{estimate.mean:+z.3f}" if estimate else "-"


def _total_minutes(summaries: list[Summary]) -> str:
    minutes = [
        (r.training.minutes if r.training else 0) + r.measuring_minutes
        for summary in summaries
        for r in summary.results
    ]
    return f"{sum(minutes):.0f}" if minutes else "-"
