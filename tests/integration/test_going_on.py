"""Go on with a run, train it further, start from it, stop it by Ctrl-C: as a user types it."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knowformer.runs.folder import load_config
from knowformer.training.checkpoint import read_counters
from tests.integration.conftest import COMMAND


def test_a_run_goes_on_with_settings_that_were_named_when_it_began(
    own_family_run: Path, family_file: Path, succeed: Callable[..., str]
) -> None:
    weights = (own_family_run / "model.safetensors").read_bytes()
    succeed("train", "--resume", own_family_run, "--threads", "2")
    assert load_config(own_family_run).threads == 2
    succeed("train", family_file, "--out", own_family_run, "--resume", "--set", "threads=1")
    assert load_config(own_family_run).threads == 1
    assert (own_family_run / "model.safetensors").read_bytes() == weights


def test_a_finished_run_is_trained_further_by_higher_limits_alone(
    own_family_run: Path, read_json: Callable[..., Any], refuse: Callable[..., str]
) -> None:
    before = read_counters(own_family_run / "checkpoint.safetensors")
    said = refuse("train", "--resume", own_family_run, "--max-epochs", "0.5")
    assert "more than the 1.0 epochs" in said
    assert "Give --max-epochs in all" in said
    printed = read_json("train", "--resume", own_family_run, "--max-epochs", "2")
    assert printed["run"] == str(own_family_run)
    counters = read_counters(own_family_run / "checkpoint.safetensors")
    assert (counters.finished, counters.step) == (True, 2 * before.step)


def test_another_graph_starts_from_the_weights_of_a_run(
    family_run: Path,
    unseen_family_file: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refuse: Callable[..., str],
) -> None:
    grown = tmp_path / "grown.tsv"
    text = unseen_family_file.read_text("utf-8")
    grown.write_text(text + "u0_ann\tneighbour_of\tu1_ann\nu1_bob\tneighbour_of\tu2_ann\n")
    said = refuse("train", grown, "--from", family_run, "--set", "model.num_layers=2")
    assert "model.num_layers = 1, got 2" in said
    assert "--from" in said
    run = tmp_path / "run"
    tune = ["--out", run, "--max-epochs", "1", "--threads", "1"]
    done = command("train", grown, "--from", family_run, *tune)
    assert done.returncode == 0, done.stderr
    assert "1 of 4 relations are new" in done.stderr
    assert load_config(run).model == load_config(family_run).model
    assert (run / "initial.safetensors").exists()


def test_the_minutes_are_those_of_the_whole_command(
    tmp_path: Path, tiny: list[str], succeed: Callable[..., str]
) -> None:
    started, busy = time.monotonic(), time.process_time()
    limits = ["--max-minutes", "0.1", "--max-epochs", "1000000"]
    succeed("train", "nations", "--out", tmp_path / "run", *tiny, *limits)
    assert time.monotonic() - started > 2.0
    assert time.process_time() - busy < 10.0  # whatever else keeps the machine busy


@pytest.mark.usefixtures("default_interrupt")
def test_ctrl_c_says_how_to_go_on_and_the_run_does(
    family_file: Path,
    tmp_path: Path,
    tiny: list[str],
    command_environment: dict[str, str],
    succeed: Callable[..., str],
) -> None:
    run = tmp_path / "a run"
    settings = [*tiny, "--max-epochs", "100000", "--set", "training.checkpoint_minutes=0"]
    process = subprocess.Popen(
        [COMMAND, "train", str(family_file), "--out", str(run), *settings],
        env=command_environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        deadline = time.monotonic() + 60
        while not (run / "checkpoint.safetensors").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in said
    last = said.splitlines()[-1]
    step = read_counters(run / "checkpoint.safetensors").step
    assert last.startswith(f"Stopped with all up to step {step:,} kept; go on with: ")
    assert last.endswith(f"knowformer train --resume '{run}'")
    copy = shutil.copytree(run, tmp_path / "copy")
    succeed("train", "--resume", copy, "--max-epochs", "1")
    metrics = json.loads((copy / "metrics.json").read_text("utf-8"))
    assert metrics["best_validation"]["step"] >= 0
    assert read_counters(copy / "checkpoint.safetensors").finished
