"""Pictures of the report, from result files alone."""

from pathlib import Path
from typing import Any

from knowformer.atomic_files import atomic_path
from knowformer.reproduction.summary import Estimate, Summary, paired
from knowformer.reproduction.theory import approximation_error, error_bound

BLUE, ORANGE, GREY = "#1f5fbf", "#d9480f", "#9aa5b1"


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure  # heavy, and an extra: loaded only to draw

    return Figure(figsize=(width, height), layout="constrained")


def _plain(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)


def _save(figure: Any, path: Path) -> Path:
    with atomic_path(path) as temporary:
        # No version in the file: the same results give the same bytes.
        figure.savefig(temporary, format="png", dpi=110, metadata={"Software": None})
    return path


def draw_against_paper(summaries: list[Summary], name: str, label: str, path: Path) -> Path:
    """Ours with deviation beside the paper's figure, a line per data set."""
    shown = [summary for summary in summaries if summary.estimate(name)]
    figure = _figure(7.0, 1.2 + 0.32 * len(shown))
    axis = figure.add_subplot()
    for row, summary in enumerate(reversed(shown)):
        ours, theirs = summary.estimate(name), summary.published(name)
        assert ours is not None
        if theirs is not None:
            axis.plot([theirs, ours.mean], [row, row], color=GREY, linewidth=1, zorder=1)
            axis.plot(theirs, row, "D", color=ORANGE, markersize=6, zorder=2)
        axis.errorbar(
            ours.mean, row, xerr=ours.deviation or 0, fmt="o", color=BLUE, capsize=3, zorder=3
        )
    axis.set_yticks(range(len(shown)), [s.experiment.group for s in reversed(shown)])
    axis.set_xlabel(label)
    axis.grid(axis="x", color="#eeeeee")
    axis.set_axisbelow(True)
    handles = [
        axis.plot([], [], "o", color=BLUE)[0],
        axis.plot([], [], "D", color=ORANGE)[0],
    ]
    figure.legend(
        handles,
        ["ours, mean and deviation over seeds", "paper"],
        loc="outside upper left",
        ncols=2,
        frameon=False,
    )
    _plain(axis)
    return _save(figure, path)


def draw_curves(summaries: list[Summary], path: Path) -> Path:
    """Validation MRR over minutes, first seed: how far a curve was from flat."""
    shown = [s for s in summaries if s.results and s.results[0].training]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = _figure(2.9 * columns, 2.2 * rows + 0.2)
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
        axis.set_ylim(bottom=0)
        _plain(axis)
    figure.supxlabel("minutes of training", fontsize=10)
    figure.supylabel("validation MRR", fontsize=10)
    return _save(figure, path)


def draw_ablation(groups: dict[str, list[Summary]], path: Path) -> Path:
    """Difference from the full model for every variant, a panel per data set."""
    figure = _figure(2.0 + 2.6 * len(groups), 2.9)
    names = list(dict.fromkeys(s.experiment.variant for group in groups.values() for s in group))
    names.remove("full")
    first: Any = None
    for number, (group, summaries) in enumerate(groups.items(), start=1):
        axis = first = figure.add_subplot(1, len(groups), number, sharey=first)
        by_name = {summary.experiment.variant: summary for summary in summaries}
        for row, name in enumerate(reversed(names)):
            gap = paired(by_name[name], by_name["full"]) if name in by_name else None
            if gap is None:
                axis.text(0, row, " not yet run", va="center", fontsize=8, color=GREY)
                continue
            color = ORANGE if gap.mean < 0 else BLUE
            axis.barh(row, gap.mean, xerr=gap.deviation, color=color, height=0.6, capsize=3)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(names)), [name.replace("_", " ") for name in reversed(names)])
        axis.tick_params(labelleft=number == 1)
        axis.locator_params(axis="x", nbins=5)
        axis.set_title(group, fontsize=10, loc="left")
        _plain(axis)
    figure.supxlabel("test MRR less that of the full model, same seed", fontsize=10)
    return _save(figure, path)


def draw_layers(panels: dict[str, dict[str, float]], path: Path) -> Path:
    """Heat-maps of MRR: a row of maps per source, a map per number of query hops.

    Args:
        panels: by title, MRR by a run's name such as L3_Q2_V3.
        path: the picture.
    """
    figure = _figure(8.0, 2.6 * len(panels) + 0.3)
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
    return _save(figure, path)


def draw_paths(groups: dict[str, list[Summary]], path: Path) -> Path:
    """Left: MRR by length of the shortest path. Right: MRR as facts go missing."""
    figure = _figure(8.4, 2.5 * len(groups) + 0.4)
    axes = figure.subplots(len(groups), 2, squeeze=False)
    styles = {"attention": (BLUE, "with attention"), "no_attention": (ORANGE, "without")}
    for (left, right), (group, summaries) in zip(axes, groups.items(), strict=True):
        for shift, summary in zip((-0.2, 0.2), summaries, strict=False):
            color, label = styles[summary.experiment.variant]
            lengths, places, bars, errors = length_rows(summary), [], [], []
            for place, (_, _, estimate) in enumerate(lengths):
                if estimate is not None:
                    places.append(place + shift)
                    bars.append(estimate.mean)
                    errors.append(estimate.deviation or 0)
            left.bar(places, bars, 0.38, yerr=errors, color=color, label=label, capsize=2)
            left.set_xticks(range(len(lengths)), [f"{name}\n{n}" for name, n, _ in lengths])
            dropped = dropped_rows(summary)
            right.errorbar(
                [100 * share for share, _ in dropped],
                [estimate.mean for _, estimate in dropped],
                yerr=[estimate.deviation or 0 for _, estimate in dropped],
                color=color,
                marker="o",
                capsize=3,
                label=label,
            )
        left.set_ylabel(f"{group}\ntest MRR")
        right.set_ylim(bottom=0)
        _plain(left)
        _plain(right)
    axes[0][1].legend(frameon=False)
    axes[-1][0].set_xlabel("edges on the shortest path; test facts below")
    axes[-1][1].set_xlabel("facts dropped from the test graph, %")
    return _save(figure, path)


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
    """Returns MRR by the share of facts that were dropped."""
    tables = [r.study["by_dropped"] for r in summary.results if r.study]
    found: list[tuple[float, Estimate]] = []
    for same in zip(*tables, strict=True):
        estimate = Estimate.of(row["mrr"] for row in same)
        if estimate is not None:
            found.append((same[0]["dropped"], estimate))
    return found


def draw_selection(summaries: list[Summary], path: Path) -> Path:
    """Test MRR of the epoch chosen on validation, and of the best epoch on test, run by run."""
    shown = [summary for summary in summaries if summary.results]
    figure = _figure(7.0, 1.2 + 0.32 * len(shown))
    axis = figure.add_subplot()
    for row, summary in enumerate(reversed(shown)):
        for result in summary.results:
            assert result.study is not None
            chosen, best = result.study["chosen_mrr"], result.study["best_on_test_mrr"]
            axis.plot([chosen, best], [row, row], color=GREY, linewidth=1.2, zorder=1)
            axis.plot(best, row, "D", color=ORANGE, markersize=5, zorder=2)
            axis.plot(chosen, row, "o", color=BLUE, markersize=5, zorder=3)
    axis.set_yticks(range(len(shown)), [s.experiment.group for s in reversed(shown)])
    axis.set_xlabel("test MRR, a line per seed")
    axis.grid(axis="x", color="#eeeeee")
    handles = [axis.plot([], [], "o", color=BLUE)[0], axis.plot([], [], "D", color=ORANGE)[0]]
    names = ["epoch chosen on validation", "best epoch on test"]
    figure.legend(handles, names, loc="outside upper left", ncols=2, frameon=False)
    _plain(axis)
    return _save(figure, path)


def draw_bound(summaries: list[Summary], path: Path) -> Path:
    """Left: error of the linear similarity and theorem 1's bound. Right: errors that occur."""
    import torch

    figure = _figure(8.4, 3.2)
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
        shares = [100 * (number + 1) / len(errors) for number in range(len(errors))]
        label = f"{summary.experiment.dataset}, {study['num_entities']:,} entities"
        right.plot(errors, shares, label=label)
    right.set_xlim(0, 0.75)
    right.set_xlabel("error of a pair of entities, trained model")
    right.set_ylabel("% of pairs with less")
    right.legend(frameon=False, fontsize=8)
    _plain(left)
    _plain(right)
    return _save(figure, path)
