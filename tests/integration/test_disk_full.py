"""A disk that fills up: one sentence, exit code 2, earlier good files intact, and a way to go on.

Twice over: a limit on file sizes stands in for a full disk anywhere; where a tiny file system can
be mounted (as root), the disk is really full.
"""

import gc
import json
import resource
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

Finished = subprocess.CompletedProcess[str]
OFTEN = ["--set", "training.checkpoint_minutes=0"]  # a checkpoint after every step


def limit_file_size(num_bytes: int) -> Callable[[], None]:
    """For the child before it starts: writing beyond this fails, as on a full disk."""
    return partial(resource.setrlimit, resource.RLIMIT_FSIZE, (num_bytes, num_bytes))


def check_storage_error(done: Finished, run: Path) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    *progress, last = done.stderr.splitlines()
    assert last.startswith(f"error: Expected to write {run}/")
    assert last.endswith(".")
    assert not any(line.startswith("error") for line in progress)
    assert list(run.glob(".*")) == []


def check_resumed_like_undisturbed(
    run: Path, undisturbed: Path, succeed: Callable[..., str]
) -> None:
    with safe_open(run / "checkpoint.safetensors", framework="np") as file:  # whole, and readable
        assert json.loads(file.metadata()["counters"])["finished"] is False
    succeed("train", "--resume", "--out", run)
    weights = (run / "model.safetensors").read_bytes()
    assert weights == (undisturbed / "model.safetensors").read_bytes()


def test_a_run_that_cannot_be_started_leaves_nothing_behind(
    family_file: Path,
    tmp_path: Path,
    refuse: Callable[..., str],
    installed: Callable[..., Finished],
    tiny: list[str],
):
    run, small = tmp_path / "run", limit_file_size(2000)
    said = refuse("train", family_file, "--out", run, *tiny, by=installed, preexec_fn=small)
    assert "File too large" in said
    assert not run.exists()


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(
    family_file: Path,
    family_run: Path,
    tmp_path: Path,
    installed: Callable[..., Finished],
    succeed: Callable[..., str],
    tiny: list[str],
):
    run = tmp_path / "run"
    # After the first validation a checkpoint also holds the best weights; just that is too much.
    whole = (family_run / "checkpoint.safetensors").stat().st_size
    limit = whole - (family_run / "model.safetensors").stat().st_size // 2
    done = installed(
        *("train", family_file, "--out", run, *tiny, *OFTEN), preexec_fn=limit_file_size(limit)
    )
    check_storage_error(done, run)
    check_resumed_like_undisturbed(run, family_run, succeed)


def test_figures_that_cannot_be_stored_are_printed_all_the_same(
    own_family_run: Path, installed: Callable[..., Finished]
):
    before = (own_family_run / "metrics.json").read_bytes()
    done = installed(
        *("evaluate", own_family_run, "--threads", "1", "--json"),
        preexec_fn=limit_file_size(len(before) + 100),
    )
    check_storage_error(done, own_family_run)
    assert 0 < json.loads(done.stdout)["realistic"]["mrr"] <= 1
    assert (own_family_run / "metrics.json").read_bytes() == before


@pytest.fixture
def small_disk(tmp_path: Path, family_run: Path) -> Iterator[Path]:
    """A file system with room for a run until its first validation, not for the checkpoint then."""
    weights = (family_run / "model.safetensors").stat().st_size
    folder = tmp_path / "disk"
    folder.mkdir()
    # Old and new checkpoint without best weights (3 + 3), then best weights on top, and the rest.
    size = 7 * weights + 48 * 1024
    mounted = mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    yield folder
    gc.collect()  # tensors of a run in this process may still be mapped to its files
    subprocess.run(["umount", folder], check=True)


def mount(*arguments: Any) -> Finished:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, text=True)
    except FileNotFoundError as error:
        return subprocess.CompletedProcess(["mount"], 1, "", str(error))


@pytest.mark.slow
def test_a_full_disk_stops_a_run_that_goes_on_once_there_is_room(
    small_disk: Path,
    family_file: Path,
    family_run: Path,
    command: Callable[..., Finished],
    succeed: Callable[..., str],
    tiny: list[str],
):
    run = small_disk / "run"
    done = command("train", family_file, "--out", run, *tiny, *OFTEN)
    check_storage_error(done, run)
    assert "No space left on device" in done.stderr
    assert mount("-o", "remount,size=64m", small_disk).returncode == 0
    check_resumed_like_undisturbed(run, family_run, succeed)
