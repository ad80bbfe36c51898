"""Progress where there is no terminal: plain lines, labelled by what is being done."""

import io
import time

import pytest
from rich.console import Console

from knowformer.interfaces import progress
from knowformer.interfaces.progress import Counting, TrainingDisplay, import_progress
from knowformer.training.events import TrainingEvent, ValidationEvent, work_event


def training(seconds_left: float) -> TrainingEvent:
    return {
        "kind": "training",
        "step": 3,
        "epoch": 1,
        "loss": 0.25,
        "queries_per_second": 120.4,
        "learning_rate": 0.1,
        "progress": 0.5,
        "seconds_left": seconds_left,
        "elapsed_seconds": 20.0,
    }


def test_every_kind_of_work_is_named_and_none_has_no_time_left() -> None:
    display = TrainingDisplay(Console(file=io.StringIO()))
    assert display.describe() == "starting"
    display(work_event("reading"))
    assert display.describe() == "reading"
    display(training(75.0))
    assert display.describe() == (
        "training  epoch 2  loss 0.250  120 queries/s  valid MRR -  1:15 left"
    )
    display(training(0.2))
    assert display.describe().endswith("valid MRR -")
    display(work_event("calibrating", 500, 2000))
    assert display.describe() == "calibrating  500 of 2,000"
    display(work_event("writing"))
    assert display.describe() == "writing"


def test_lines_come_though_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_LINE_SECONDS", 0.01)
    said = io.StringIO()
    with Counting(Console(file=said), "answering") as count:
        count(1234, 4000)
        deadline = time.monotonic() + 10
        while said.getvalue().count("\n") < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    lines = said.getvalue().splitlines()
    assert len(lines) >= 2
    assert set(lines) == {"answering 1,234 of 4,000  after 0:00"}


def test_what_is_soon_over_or_not_wanted_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    with import_progress(Console(file=said)) as tell:
        tell("read", 10, 100)
    monkeypatch.setattr(progress, "PLAIN_LINE_SECONDS", 0.001)
    with TrainingDisplay(Console(file=said, quiet=True)):
        time.sleep(0.05)
    assert said.getvalue() == ""


def validated(mrr: float, *, best: bool) -> ValidationEvent:
    return {
        "kind": "validation",
        "step": 1,
        "epoch": 0,
        "valid_mrr": mrr,
        "valid_hits@1": 0.5,
        "valid_hits@10": 0.5,
        "best": best,
        "elapsed_seconds": 1.0,
    }


def test_weights_kept_beside_a_lower_figure_say_why() -> None:
    said = io.StringIO()
    with TrainingDisplay(Console(file=said, width=120)) as display:
        for mrr, best in ((0.4, True), (0.3, False), (0.39, True), (0.5, True)):
            display(validated(mrr, best=best))
    ends = [line.split("hits@10 0.500")[1].strip() for line in said.getvalue().splitlines()]
    assert ends == ["kept", "", "kept (not clearly below 0.400)", "kept"]
