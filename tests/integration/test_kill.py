"""kill -9 at any moment, then --resume: the run ends with the bits of one that was left alone."""

import json
import random
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

SETTINGS = [
    *("--set", "training.max_epochs=2", "--set", "training.validations_per_epoch=2"),
    *("--set", "training.batch_size=4"),  # 52 steps
    *("--set", "training.checkpoint_minutes=0"),  # a checkpoint after every step
]


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
    """Waits as closely as it can; returns False when the process ended before."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if happened():
            return True
        time.sleep(0.0005)
    assert process.returncode == 0, "the command failed or hangs"
    return False


class Watch:
    """Counts how often a file has been seen to change since it was first looked at."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._states: list[tuple[int, int] | None] = []

    def has_changed(self, times: int) -> bool:
        try:
            found = self._path.stat()
            state = found.st_ino, found.st_size
        except FileNotFoundError:
            state = None
        if not self._states or state != self._states[-1]:
            self._states.append(state)
        return len(self._states) > times


def is_being_written(run: Path) -> bool:
    return any(run.glob(".checkpoint.safetensors.*.partial"))


def read_events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text("utf-8").splitlines()]


def validations(run: Path) -> list[dict[str, Any]]:
    """What was measured, without what a clock has to do with."""
    return [
        {key: value for key, value in event.items() if key != "elapsed_seconds"}
        for event in read_events(run)
        if event["kind"] == "validation"
    ]


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_with_the_same_bytes(
    family_file: Path,
    tmp_path: Path,
    succeed: Callable[..., str],
    start: Callable[..., subprocess.Popen[bytes]],
    tiny: list[str],
):
    quiet, run = tmp_path / "undisturbed", tmp_path / "killed"
    arguments = ["train", family_file, *tiny, *SETTINGS]
    succeed(*arguments, "--out", quiet)

    def kill_when(*moments: Callable[[], bool]) -> bool:
        """Starts or resumes the run, kills it after these moments; False: it ended before."""
        process = start(*arguments, "--out", run, "--resume")
        try:
            return all(wait_until(moment, process) for moment in moments)
        finally:
            process.kill()
            process.wait()

    assert kill_when(run.exists)  # while the run folder is being made
    assert kill_when((run / "config.toml").exists)  # before the first checkpoint
    killed: list[str] = []
    moments = {
        "a checkpoint half-written": partial(is_being_written, run),
        # Its checkpoint is still to come: it must not stand there twice.
        "an event recorded": partial(Watch(run / "events.jsonl").has_changed, 1),
    }
    for moment, happens in moments.items():
        steps = random.randint(1, 12)
        saved = partial(Watch(run / "checkpoint.safetensors").has_changed, steps)
        assert kill_when(saved, happens), "the run is too short to be killed"
        killed.append(f"{steps} steps, {moment}")
    succeed(*arguments, "--out", run, "--resume")

    assert (run / "model.safetensors").read_bytes() == (quiet / "model.safetensors").read_bytes(), (
        killed
    )
    assert validations(run) == validations(quiet), killed
    assert len(validations(run)) == 4
    recorded = [(event["step"], event["kind"]) for event in read_events(run)]
    assert recorded == sorted(set(recorded)), killed
    assert {path.name for path in run.iterdir()} == {path.name for path in quiet.iterdir()}
