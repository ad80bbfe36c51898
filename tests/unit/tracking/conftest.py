"""A run as trackers see it: stopped after step 20, with its checkpoint at step 10, and resumed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from knowformer.training.events import Event

TellRun = Callable[[Callable[[Event], None]], None]


def training(step: int, loss: float) -> Event:
    return {
        "kind": "training", "step": step, "epoch": 0, "loss": loss, "queries_per_second": 50.0,
        "learning_rate": 0.005, "progress": 0.5, "seconds_left": 1.0, "elapsed_seconds": 1.0,
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def start(run: Path, step: int) -> Event:
    settings = {"model.dropout": 0.1, "training.max_minutes": None}
    return {
        "kind": "start", "run": str(run), "dataset": "ring", "settings": settings, "step": step
    }  # fmt: skip


@pytest.fixture
def tell_first_half(run: Path) -> TellRun:
    def tell(tracker: Callable[[Event], None]) -> None:
        for event in (start(run, 0), training(10, 3.0), training(20, 99.0)):
            tracker(event)

    return tell


@pytest.fixture
def tell_resumed(run: Path) -> TellRun:
    validation: Event = {
        "kind": "validation", "step": 20, "epoch": 0, "valid_mrr": 0.5, "valid_hits@1": 0.25,
        "valid_hits@10": 1.0, "best": True, "elapsed_seconds": 2.0,
    }  # fmt: skip
    metrics = {"best_validation": {"step": 20, "valid_mrr": 0.5}, "stopped": {"reason": "enough"}}
    end: Event = {"kind": "end", "run": str(run), "step": 20, "metrics": metrics}

    def tell(tracker: Callable[[Event], None]) -> None:
        for event in (start(run, 10), training(20, 2.0), validation, end):
            tracker(event)

    return tell
