"""Training by torchrun: real processes, one of them killed, resumed on another number of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SETTINGS = [
    *("--set", "training.batch_size=4", "--set", "training.validations_per_epoch=2"),
    *("--set", "training.checkpoint_minutes=0", "--set", "training.max_epochs=3"),
]


def ranks_of(launcher: int) -> dict[int, int]:
    """Returns the ids of the processes that torchrun has started, by rank."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    found: dict[int, int] = {}
    for pid in map(int, children):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        found |= {int(entry[5:]): pid for entry in variables if entry.startswith(b"RANK=")}
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks processes up in /proc")
def test_killed_on_two_processes_and_resumed_on_three_it_ends_with_the_bytes_of_one(
    family_file: Path,
    tmp_path: Path,
    succeed: Callable[..., str],
    command_environment: dict[str, str],
    tiny: list[str],
) -> None:
    quiet, run = tmp_path / "one", tmp_path / "many"
    arguments = ["train", family_file, *tiny, *SETTINGS, "--resume"]
    succeed(*arguments, "--out", quiet)

    def start(processes: int) -> subprocess.Popen[str]:
        torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
        words = [*torchrun, "-m", "knowformer", *map(str, arguments), "--out", str(run)]
        return subprocess.Popen(
            [sys.executable, *words],
            env=command_environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    first = start(2)
    while not (run / "checkpoint.safetensors").exists():
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    victim = ranks_of(first.pid)[1]
    os.kill(victim, signal.SIGKILL)
    printed, said = first.communicate(timeout=300)
    assert first.returncode != 0
    assert printed == ""
    assert f"rank 1 (process {victim} on " in said
    assert "go on with --resume, on any number of processes" in said

    printed, said = start(3).communicate(timeout=300)
    assert printed.count("Run folder:") == 1, said
    assert (run / "model.safetensors").read_bytes() == (quiet / "model.safetensors").read_bytes()
    assert {path.name for path in run.iterdir()} == {path.name for path in quiet.iterdir()}
