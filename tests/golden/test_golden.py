"""A change that is not meant to change numbers must not change these."""

import json
from pathlib import Path

import pytest

from knowformer.training import loop
from tests.golden.make import NUM_STEPS, RECORD, golden_losses

pytestmark = pytest.mark.golden


@pytest.fixture(autouse=True)
def an_event_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOG_EVERY_SECONDS", 0.0)


def test_twenty_steps_have_the_losses_of_the_record_and_equal_bits_twice(tmp_path: Path) -> None:
    runs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        runs.append(golden_losses(tmp_path / name))
    assert runs[0] == runs[1]
    assert len(runs[0]) == NUM_STEPS
    recorded = json.loads(RECORD.read_text())["losses"]
    # Not bits: other CPUs round otherwise.
    assert runs[0] == pytest.approx(recorded, rel=1e-5)
