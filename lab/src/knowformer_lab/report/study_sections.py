"""The report's sections on studies: paths, selection, the theorems and the search of settings."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from knowformer.evaluation.bootstrap import CONFIDENCE, bootstrap_interval
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
    speed_cell,
    with_results,
)
from knowformer_lab.report.summary import NOT_YET, Summary, paired


def paths(summaries: list[Summary], folder: Path) -> Section:
    """Figure 2."""
    groups = by_group(summaries)
    words = [
        "Does attention help where paths are long or missing (figure 2)? Test facts are grouped by "
        "the edges on the shortest path from head to tail; *none* has no path at all. Then a "
        "random share of the test graph's facts is dropped before asking. The paper shows its "
        "curves without figures, so there is none to compare with.",
        *_attention_gains(groups),
    ]
    header = (
        "data set",
        "model",
        "all facts",
        "short: 1 to 3",
        "longer",
        "no path",
        "half dropped",
        *COST,
    )
    rows: list[Sequence[str]] = []
    for group, members in groups.items():
        for summary in with_results(members):
            rows.append(
                (
                    linked(summary, group),
                    summary.experiment.variant.replace("_", " "),
                    estimate_cell(summary.estimate("mrr")),
                    *_reach_cells(summary),
                    _half_dropped(summary),
                    *cost_cells(summary),
                )
            )
    ready = {g: shown for g, m in groups.items() if (shown := with_results(m))}
    draw = (lambda: pictures.draw_paths(ready, folder / "paths.png")) if ready else None
    table = markdown_table(header, rows, names=2)
    return Section("Longer and missing paths", words, table, draw)


def selection(summaries: list[Summary], folder: Path) -> Section:
    """What choosing the epoch on test facts is worth."""
    leaks = [r.study["leak"] for s in summaries for r in s.results if r.study]
    words = [
        "The same runs as in section Inductive. The weights of every validation are kept; once "
        "training is over, each is ranked on the test facts. *Chosen* is the epoch that validation "
        "picked, *best on test* the highest of all: what a run that looks at the test facts, as "
        "the released code does, would report.",
    ]
    if leaks:
        low, high = bootstrap_interval(leaks, seed=0)
        words.append(
            f"**Choosing on test facts is worth {fmean(leaks):+z.3f} MRR on average** "
            f"({CONFIDENCE:.0%} interval {low:+z.3f} to {high:+z.3f}, bootstrap over {len(leaks)} "
            f"runs; largest {max(leaks):+z.3f})."
        )
    header = (
        "data set",
        "chosen on validation",
        "best on test",
        "difference",
        "seeds",
        "validations",
        "minutes",
        "commit",
    )
    rows = [
        (
            linked(s, s.experiment.group),
            estimate_cell(s.estimate(lambda r: r.study["chosen_mrr"] if r.study else None)),
            estimate_cell(
                s.estimate(lambda r: r.study["best_on_test_mrr"] if r.study else None), absent="-"
            ),
            estimate_cell(
                s.estimate(lambda r: r.study["leak"] if r.study else None), sign=True, absent="-"
            ),
            str(len(s.results)),
            ", ".join(str(len(r.study["points"])) for r in s.results if r.study) or "-",
            s.minutes(),
            s.commit(),
        )
        for s in with_results(summaries)
    ]
    draw = (lambda: pictures.draw_selection(summaries, folder / "selection.png")) if leaks else None
    return Section("Selection", words, markdown_table(header, rows), draw)


def theory(summaries: list[Summary], folder: Path) -> Section:
    """The two theorems."""
    bounds = [s for s in summaries if s.experiment.kind == "bound"]
    words = [
        "**Theorem 1.** The linear similarity 1 + s stays within e^gamma/2 of exp(s), s = q.k, "
        "whatever the size of the graph; gamma in (0, 1) is where Taylor's remainder is "
        "taken. Error and bound meet at s = 1 alone, at 0.72; at s = -1 the error is 0.37. Below: "
        "pairs of entities in models trained on graphs of different size.",
    ]
    for summary in summaries:
        if summary.experiment.kind == "expressivity":
            words.append(_expressivity(summary))
    header = (
        "graph",
        "entities",
        "pairs",
        "mean error",
        "largest error",
        "mean bound",
        "pairs above bound",
    )
    rows: list[Sequence[str]] = []
    for summary in with_results(bounds):
        study = summary.results[0].study
        assert study is not None
        name = linked(summary, summary.experiment.dataset or "")
        rows.append(
            (
                name,
                f"{study['num_entities']:,}",
                f"{study['num_pairs']:,}",
                *(f"{study[key]:.3f}" for key in ("mean_error", "largest_error", "mean_bound")),
                str(study["pairs_above_bound"]),
            )
        )
    ready = with_results(bounds)
    draw = (lambda: pictures.draw_bound(ready, folder / "theory.png")) if ready else None
    return Section("Bounds and expressivity", words, markdown_table(header, rows), draw)


def search(summaries: list[Summary], folder: Path) -> Section:
    """The recorded search; nothing in it has seen a test fact."""
    del folder
    words = [
        "Settings are chosen here: one change at a time, a fixed budget for each trial, "
        "validation facts alone. No trial is ever evaluated on test facts. What wins clearly "
        "becomes the data set's recommended setting. *From baseline* compares under the same seed; "
        "*course* is the MRR at each validation of the first seed, with the chosen one in bold.",
    ]
    tables: list[str] = []
    for group, members in by_group(summaries).items():
        base = next((s for s in members if s.experiment.variant == "baseline"), members[0])
        done = with_results(members)
        if not done:
            continue
        # What the paper reports of the data set is what a trial is judged by.
        measure = "valid_mrr" if done[0].estimate("valid_auroc") is None else "valid_auroc"
        done.sort(key=lambda s: -_mean(s, measure))
        rows = [
            (
                linked(s, s.experiment.variant),
                estimate_cell(s.estimate(measure)),
                estimate_cell(paired(s, base, measure), sign=True, absent="-"),
                _course(s),
                speed_cell(s),
                *cost_cells(s),
            )
            for s in done
        ]
        experiment = members[0].experiment
        budget = f", {experiment.budget} a trial" if experiment.budget else ""
        tables.append(f"### {group}{budget}\n\n{experiment.about}.\n")
        judged_by = f"validation {measure.removeprefix('valid_').upper()}"
        header = ("trial", judged_by, "from baseline", "course", "queries/s", *COST)
        tables.append(markdown_table(header, rows))
    return Section("Search of settings", words, "\n".join(tables))


def _course(summary: Summary) -> str:
    """Returns the MRR of each validation in thousandths; where it fell, a model overfitted."""
    record = summary.results[0].training
    if record is None:
        return "-"
    return " ".join(
        f"**.{point.mrr * 1000:03.0f}**"
        if point.step == record.chosen_step
        else f".{point.mrr * 1000:03.0f}"
        for point in record.validations
    )


REACHES = ("short paths", "longer paths", "no path")


def _by_reach(summary: Summary) -> dict[str, tuple[float, int]]:
    """MRR and number of facts with short paths, longer ones and none, where there are any."""
    lengths = pictures.length_rows(summary)
    is_short = {"1", "2", "3"}
    chosen = (
        [row for row in lengths if row[0] in is_short],
        [row for row in lengths if row[0] not in {*is_short, "none"}],
        [row for row in lengths if row[0] == "none"],
    )
    figures: dict[str, tuple[float, int]] = {}
    for name, rows in zip(REACHES, chosen, strict=True):
        count = sum(number for _, number, _ in rows)
        total = sum(number * estimate.mean for _, number, estimate in rows if estimate is not None)
        if count:
            figures[name] = (total / count, count)
    return figures


def _reach_cells(summary: Summary) -> list[str]:
    figures = _by_reach(summary)
    return [
        f"{figures[name][0]:.3f} ({figures[name][1]})" if name in figures else "-"
        for name in REACHES
    ]


def _attention_gains(groups: dict[str, list[Summary]]) -> list[str]:
    """What attention adds, by reach, as means over the data sets that have both models."""
    gains: dict[str, list[float]] = {name: [] for name in ("all facts", *REACHES, "half dropped")}
    for members in groups.values():
        by_name = {summary.experiment.variant: summary for summary in with_results(members)}
        if not {"attention", "no_attention"} <= by_name.keys():
            continue
        one, other = (_figures(by_name[name]) for name in ("attention", "no_attention"))
        for name in one.keys() & other.keys():
            gains[name].append(one[name] - other[name])
    by_reach = [f"{name} {fmean(each):+z.3f}" for name, each in gains.items() if each]
    if not by_reach:
        return []
    many = counted(len(gains["all facts"]), "data set")
    return [f"**Attention's gain in MRR, mean over {many}:** {'; '.join(by_reach)}."]


def _figures(summary: Summary) -> dict[str, float]:
    overall = summary.estimate("mrr")
    figures = {name: mrr for name, (mrr, _) in _by_reach(summary).items()}
    half = dict(pictures.dropped_rows(summary)).get(0.5)
    named = {"all facts": overall, "half dropped": half}
    return figures | {name: estimate.mean for name, estimate in named.items() if estimate}


def _half_dropped(summary: Summary) -> str:
    half = dict(pictures.dropped_rows(summary)).get(0.5)
    return half.text() if half else "-"


def _expressivity(summary: Summary) -> str:
    studies = [result.study for result in summary.results if result.study]
    start = (
        "**Theorem 2.** What the test RA-WL2 tells apart, an attention layer can tell apart, and "
        "more. Checked with one layer of random weights in double precision, without noise, on "
        "random graphs"
    )
    if not studies:
        return f"{start}: {NOT_YET}."
    pairs = sum(study["pairs_told_apart_by_ra_wl2"] for study in studies)
    also = sum(study["of_these_by_the_layer"] for study in studies)
    beyond = {
        key: sum(s["beyond_paths"][key] for s in studies) for key in studies[0]["beyond_paths"]
    }
    return (
        f"{start} ({counted(len(studies), 'seed')}): of {pairs:,} pairs of entities that RA-WL2 "
        f"tells apart, the layer tells {also:,} apart (smallest difference "
        f"{min(study['smallest_difference'] for study in studies):.0e}). Of {beyond['pairs']:,} "
        "entities that no path links to the head, in graphs that differ around the head, RA-WL2 "
        f"tells {beyond['by_ra_wl2']:,} apart, a layer without attention "
        f"{beyond['by_the_layer_without_attention']:,}, and the attention layer "
        f"{beyond['by_the_layer']:,}."
    )


def _mean(summary: Summary, measure: str) -> float:
    estimate = summary.estimate(measure)
    return estimate.mean if estimate else 0.0
