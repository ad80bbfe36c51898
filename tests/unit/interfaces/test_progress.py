"""Progress where there is no terminal: a plain line now and then."""

import io

import pytest
from rich.console import Console

from knowformer.interfaces import progress
from knowformer.interfaces.progress import Counting, TrainingDisplay, import_progress
from knowformer.training.events import ValidationEvent


def test_counted_work_is_told_in_lines_that_are_not_too_many(monkeypatch: pytest.MonkeyPatch):
    said = io.StringIO()
    with Counting(Console(file=said), "answer") as count:
        count(1, 4000)
        assert said.getvalue() == ""  # too soon
        monkeypatch.setattr(progress, "PLAIN_LINE_SECONDS", -1.0)
        count(1234, 4000)
    assert said.getvalue() == "answer 1,234/4,000  0:00\n"


def test_an_import_is_quiet_without_a_terminal():
    said = io.StringIO()
    with import_progress(Console(file=said)) as tell:
        tell("read", 10, 100)
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


def test_weights_kept_beside_a_lower_figure_say_why():
    said = io.StringIO()
    with TrainingDisplay(Console(file=said, width=120)) as display:
        for mrr, best in ((0.4, True), (0.3, False), (0.39, True), (0.5, True)):
            display(validated(mrr, best=best))
    ends = [line.split("hits@10 0.500")[1].strip() for line in said.getvalue().splitlines()]
    assert ends == ["kept", "", "kept (not clearly below 0.400)", "kept"]
