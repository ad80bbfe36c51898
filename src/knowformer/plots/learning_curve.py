"""A run's learning curve as a picture, from its events alone."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from knowformer.plots.drawing import drawing, title_of
from knowformer.plots.palette import BLUE, GREY, ORANGE
from knowformer.storage.atomic_files import atomic_path
from knowformer.training.events import RecordedEvent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOW_TO_GET_PLOTS = "no picture: matplotlib is not installed (pip install 'knowformer[plots]')"


def can_draw() -> bool:
    """Returns True when matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw_learning_curve(events: Sequence[RecordedEvent], path: Path, *, title: str) -> None:
    """Draws loss and validation MRR over minutes, the chosen weights marked."""
    with drawing():
        figure = _figure(events, title)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=path.suffix.lstrip("."), dpi=150)


def _figure(events: Sequence[RecordedEvent], title: str) -> "Figure":
    from matplotlib.figure import Figure  # heavy, and an extra: loaded only to draw

    training = [event for event in events if event["kind"] == "training"]
    validation = [event for event in events if event["kind"] == "validation"]
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    loss_axis = figure.add_subplot()
    loss_axis.plot(
        [event["elapsed_seconds"] / 60 for event in training],
        [event["loss"] for event in training],
        color=GREY,
        linewidth=1.4,
        label="training loss (left)",
    )
    loss_axis.set_xlabel("minutes")
    loss_axis.set_ylabel("training loss")
    loss_axis.set_ylim(bottom=0)
    mrr_axis = loss_axis.twinx()
    minutes = [event["elapsed_seconds"] / 60 for event in validation]
    mrr = [event["valid_mrr"] for event in validation]
    mrr_axis.plot(minutes, mrr, color=BLUE, marker="o", markersize=4, label="validation MRR")
    best = [number for number, event in enumerate(validation) if event["best"]][-1:]
    for number in best:
        mrr_axis.plot(minutes[number], mrr[number], "*", color=ORANGE, markersize=15)
        mrr_axis.annotate(
            f"kept: {mrr[number]:.3f}",
            (minutes[number], mrr[number]),
            textcoords="offset points",
            xytext=(-8, -18),
            ha="right",
            color=ORANGE,
        )
    mrr_axis.set_ylabel("validation MRR, filtered by train and valid")
    mrr_axis.set_ylim(0, 1)
    loss_axis.set_title(title_of(title), loc="left")
    lines = [*loss_axis.get_lines(), mrr_axis.get_lines()[0]]
    loss_axis.legend(
        lines, ["training loss (left)", "validation MRR (right)"], loc="upper right", frameon=False
    )
    loss_axis.spines["top"].set_visible(False)
    mrr_axis.spines["top"].set_visible(False)
    return figure
