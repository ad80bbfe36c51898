import struct
from pathlib import Path

import pytest

from knowformer.plots.learning_curve import can_draw, draw_learning_curve
from knowformer.training.events import Event

pytestmark = pytest.mark.skipif(not can_draw(), reason="matplotlib is not installed")


def run_of(num_epochs: int) -> list[Event]:
    events: list[Event] = []
    for epoch in range(num_epochs):
        seconds = 30.0 * (epoch + 1)
        loss = {"kind": "training", "elapsed_seconds": seconds, "loss": 3.0 / (epoch + 1)}
        best = {"kind": "validation", "elapsed_seconds": seconds, "best": epoch != 2}
        events += [loss, best | {"valid_mrr": 0.2 + 0.1 * epoch}]
    return events


def size_of(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


def test_a_run_is_drawn_as_a_picture_of_sensible_size(tmp_path: Path) -> None:
    path = tmp_path / "learning_curve.png"
    draw_learning_curve(run_of(4), path, title="ring, seed 0")
    width, height = size_of(path)
    assert 600 <= width <= 2400
    assert 300 <= height <= 1600
    assert path.stat().st_size > 5_000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("num_epochs", [0, 1])
def test_the_shortest_runs_are_drawn_too(tmp_path: Path, num_epochs: int) -> None:
    draw_learning_curve(run_of(num_epochs), tmp_path / "curve.png", title="short")
    assert size_of(tmp_path / "curve.png")[0] >= 600


def test_what_was_measured_changes_the_picture(tmp_path: Path) -> None:
    for name, num_epochs in (("short", 2), ("long", 4)):
        draw_learning_curve(run_of(num_epochs), tmp_path / f"{name}.png", title="the same")
    assert (tmp_path / "short.png").read_bytes() != (tmp_path / "long.png").read_bytes()
