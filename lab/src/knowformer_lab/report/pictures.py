"""Pictures of the report, from result files alone."""

from pathlib import Path
from typing import Any

from knowformer.storage.atomic_files import atomic_path
from knowformer_lab.report.summary import Estimate, Summary, paired
from knowformer_lab.studies.theory import approximation_error, error_bound

BLUE, PALE_BLUE, ORANGE, GREY = "#1f5fbf", "#9cc3f5", "#d9480f", "#9aa5b1"


def figure_of(width: float, height: float) -> Any:
    """Returns an empty figure."""
    from matplotlib.figure import Figure  # heavy, and an extra: loaded only to draw

    return Figure(figsize=(width, height), layout="constrained")


def plain(axis: Any) -> None:
    """Takes away the frame's upper and right sides."""
    axis.spines[["top", "right"]].set_visible(False)


def name_marks(figure: Any, *, bars: bool = False) -> None:
    """Adds the legend that all comparisons share: blue is ours, an orange diamond the paper's."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker=marker, color=color, linestyle="")
        for marker, color in (("s" if bars else "o", BLUE), ("D", ORANGE))
    ]
    names = ["ours, mean and deviation over seeds", "paper"]
    figure.legend(handles, names, loc="outside upper left", ncols=2, frameon=False)


def save_picture(figure: Any, path: Path) -> Path:
    """Writes a figure atomically, and returns where."""
    with atomic_path(path) as temporary:
        # No version in the file: the same results give the same bytes.
        figure.savefig(temporary, format="png", dpi=110, metadata={"Software": None})
    return path


def draw_curves(summaries: list[Summary], path: Path) -> Path:
    """Validation MRR over minutes, first seed: how far a curve was from flat."""
    shown = [s for s in summaries if s.results and s.results[0].training]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = figure_of(2.9 * columns, 2.2 * rows + 0.2)
    for number, summary in enumerate(shown, start=1):
        axis = figure.add_subplot(rows, columns, number)
        record = summary.results[0].training
        assert record is not None
        points = record.validations
        axis.plot([p.minutes for p in points], [p.mrr for p in points], color=BLUE, marker=".")
        chosen = [p for p in points if p.step == record.chosen_step]
        axis.plot([p.minutes for p in chosen], [p.mrr for p in chosen], "*", color=ORANGE, ms=11)
        axis.set_title(summary.experiment.group, fontsize=10, loc="left")
        axis.set_xlim(left=0)
        axis.set_ylim(0, 1.1 * max(p.mrr for p in points))
        plain(axis)
    figure.supxlabel("minutes of training", fontsize=10)
    figure.supylabel("validation MRR", fontsize=10)
    return save_picture(figure, path)


def draw_ablation(groups: dict[str, list[Summary]], path: Path) -> Path:
    """Difference from the full model for every variant, the paper's too, a panel per data set."""
    figure = figure_of(2.0 + 2.6 * len(groups), 2.9)
    names = list(dict.fromkeys(s.experiment.variant for group in groups.values() for s in group))
    names.remove("full")
    first: Any = None
    for number, (group, summaries) in enumerate(groups.items(), start=1):
        axis = first = figure.add_subplot(1, len(groups), number, sharex=first, sharey=first)
        by_name = {summary.experiment.variant: summary for summary in summaries}
        for row, name in enumerate(reversed(names)):
            if name not in by_name:
                continue
            gap = paired(by_name[name], by_name["full"])
            if gap is not None:
                axis.barh(row, gap.mean, xerr=gap.deviation, color=BLUE, height=0.6, capsize=3)
            theirs, full = by_name[name].published("mrr"), by_name["full"].published("mrr")
            if theirs is not None and full is not None:
                axis.plot(theirs - full, row, "D", color=ORANGE, markersize=6)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(names)), [name.replace("_", " ") for name in reversed(names)])
        axis.tick_params(labelleft=number == 1)
        axis.locator_params(axis="x", nbins=4)
        axis.set_title(group, fontsize=10, loc="left")
        plain(axis)
    figure.supxlabel("test MRR less that of the full model, same seed", fontsize=10)
    name_marks(figure, bars=True)
    return save_picture(figure, path)


def draw_layers(panels: dict[str, dict[str, float]], path: Path) -> Path:
    """Heat-maps of MRR: a row of maps per source, a map per number of query hops.

    Args:
        panels: by title, MRR by a run's name such as L3_Q2_V3.
        path: the picture.
    """
    figure = figure_of(8.0, 2.6 * len(panels) + 0.3)
    parts = figure.subfigures(len(panels), 1, squeeze=False)[:, 0]
    for part, (title, scores) in zip(parts, panels.items(), strict=True):
        part.suptitle(title, fontsize=11, x=0.02, ha="left")
        axes = part.subplots(1, 3, sharey=True)
        low, high = min(scores.values()), max(scores.values())
        for hops, axis in enumerate(axes, start=1):
            names = [[f"L{layer}_Q{hops}_V{v}" for layer in (1, 2, 3)] for v in (3, 2, 1)]
            table = [[scores.get(name, float("nan")) for name in row] for row in names]
            axis.imshow(table, vmin=low, vmax=high, cmap="YlGnBu", aspect="auto")
            for y, row in enumerate(table):
                for x, value in enumerate(row):
                    if value == value:  # not a number: not yet run
                        dark = high > low and (value - low) / (high - low) > 0.6
                        color = "white" if dark else "black"
                        axis.text(x, y, f"{value:.3f}", ha="center", va="center", color=color)
                    else:
                        axis.text(x, y, "-", ha="center", va="center", color=GREY)
            axis.set_xticks(range(3), ["L=1", "L=2", "L=3"])
            axis.set_yticks(range(3), ["3", "2", "1"])
            axis.set_title(f"{hops} query hop{'s' if hops > 1 else ''}", fontsize=10)
        axes[0].set_ylabel("value hops")
    return save_picture(figure, path)


def draw_paths(groups: dict[str, list[Summary]], path: Path) -> Path:
    """Left: MRR by length of the shortest path. Right: MRR as facts go missing."""
    figure = figure_of(8.4, 2.0 * len(groups) + 0.7)
    axes = figure.subplots(len(groups), 2, squeeze=False)
    for (left, right), (group, summaries) in zip(axes, groups.items(), strict=True):
        for summary in summaries:
            _draw_paths(left, right, summary)
        left.set_ylabel("test MRR")
        left.set_title(group, fontsize=10, loc="left")
        for axis in (left, right):
            axis.set_ylim(bottom=0)
            plain(axis)
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=2, frameon=False)
    axes[-1][0].set_xlabel("edges on the shortest path; below, how many test facts")
    axes[-1][1].set_xlabel("facts dropped from the test graph, %")
    return save_picture(figure, path)


def _draw_paths(left: Any, right: Any, summary: Summary) -> None:
    with_attention = summary.experiment.variant == "attention"
    color, shift = (BLUE, -0.2) if with_attention else (ORANGE, 0.2)
    label = "with attention" if with_attention else "without attention"
    lengths = length_rows(summary)
    for place, (_, _, estimate) in enumerate(lengths):
        if estimate is not None:
            left.bar(
                place + shift,
                estimate.mean,
                0.38,
                yerr=estimate.deviation,
                color=color,
                capsize=2,
                label=label if place == 0 else None,
            )
    left.set_xticks(range(len(lengths)), [f"{name}\n{count}" for name, count, _ in lengths])
    dropped = dropped_rows(summary)
    several = dropped and dropped[0][1].deviation is not None
    right.errorbar(
        [100 * fraction for fraction, _ in dropped],
        [estimate.mean for _, estimate in dropped],
        yerr=[estimate.deviation for _, estimate in dropped] if several else None,
        color=color,
        marker="o",
        markersize=4,
        capsize=3,
    )


def length_rows(summary: Summary) -> list[tuple[str, int, Estimate | None]]:
    """Returns name, facts and MRR for every length of path that occurs; the last has no path."""
    rows: list[tuple[str, int, Estimate | None]] = []
    tables = [r.study["by_length"] for r in summary.results if r.study]
    for same in zip(*tables, strict=True):
        length, count = same[0]["length"], same[0]["num_facts"]
        longest = summary.experiment.study.max_length
        name = "none" if length is None else f"{length}{'+' if length == longest else ''}"
        if count:
            rows.append((name, count, Estimate.of(row["mrr"] for row in same)))
    return rows


def dropped_rows(summary: Summary) -> list[tuple[float, Estimate]]:
    """Returns MRR by the fraction of facts that was dropped."""
    tables = [r.study["by_dropped"] for r in summary.results if r.study]
    rows: list[tuple[float, Estimate]] = []
    for same in zip(*tables, strict=True):
        estimate = Estimate.of(row["mrr"] for row in same)
        if estimate is not None:
            rows.append((same[0]["dropped"], estimate))
    return rows


def draw_selection(summaries: list[Summary], path: Path) -> Path:
    """What the best epoch on test has over the epoch chosen on validation, a point per seed."""
    shown = [summary for summary in summaries if summary.results]
    figure = figure_of(7.0, 0.9 + 0.28 * len(shown))
    axis = figure.add_subplot()
    for row, summary in enumerate(reversed(shown)):
        leaks = [result.study["leak"] for result in summary.results if result.study]
        axis.plot(leaks, [row] * len(leaks), "o", color=BLUE, alpha=0.7, clip_on=False, zorder=3)
    axis.set_yticks(range(len(shown)), [s.experiment.group for s in reversed(shown)])
    axis.set_xlim(left=0)
    axis.set_xlabel("test MRR gained by choosing the epoch on test facts, a point per seed")
    axis.grid(color="#eeeeee")
    axis.set_axisbelow(True)
    plain(axis)
    return save_picture(figure, path)


def draw_bound(summaries: list[Summary], path: Path) -> Path:
    """Left: error of the linear similarity and theorem 1's bound. Right: errors that occur."""
    import torch

    figure = figure_of(8.4, 3.2)
    left, right = figure.subplots(1, 2)
    s = torch.linspace(-1, 1, 201, dtype=torch.double)
    left.plot(s, error_bound(s), color=ORANGE, label="bound $e^\\gamma/2$")
    left.plot(s, approximation_error(s), color=BLUE, label="error $|1 + s - e^s|$")
    left.set_xlabel("s = q.k")
    left.set_ylim(bottom=0)
    left.legend(frameon=False)
    for summary in summaries:
        study = summary.results[0].study
        assert study is not None
        errors = sorted(error for _, error in study["sample"])
        percent = [100 * (number + 1) / len(errors) for number in range(len(errors))]
        label = f"{summary.experiment.dataset}, {study['num_entities']:,} entities"
        right.plot(errors, percent, label=label)
    right.set_xlim(0, 0.75)
    right.set_xlabel("error of a pair of entities, trained model")
    right.set_ylabel("% of pairs with less")
    right.legend(frameon=False, fontsize=8)
    plain(left)
    plain(right)
    return save_picture(figure, path)
