import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "knowformer"]


@pytest.mark.parametrize("moment", [0.12, 0.6, 1.2])
def test_ctrl_c_while_the_command_is_loaded_is_one_line(moment: float, tmp_path: Path) -> None:
    # Before the interpreter has come to its first line, Ctrl-C is Python's own affair.
    marker = tmp_path / "started"
    look = f"from knowformer.interfaces.cli import main; open({str(marker)!r}, 'w'); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", look, "evaluate", "nowhere"], stderr=subprocess.PIPE, text=True
    )
    while not marker.exists() and process.poll() is None:
        time.sleep(0.005)
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1
    assert process.returncode in (130, 2)  # 2: it was over before


@pytest.mark.parametrize(
    ("redirection", "code", "says"),
    [
        (">/dev/full", 2, "No space left on device"),
        (">&-", 2, "Bad file descriptor"),
        ("<&- 2>&-", 0, ""),
        ("| true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
)
def test_output_that_cannot_be_written(redirection: str, code: int, says: str) -> None:
    typed = " ".join([*COMMAND, "datasets", "--json", redirection])
    done = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == bool(says)
    assert done.returncode == code


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    typed = f"cd {gone} && rmdir {gone} && exec {' '.join(COMMAND)} datasets"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        ["bash", "-c", typed], capture_output=True, text=True, timeout=300, env=environment
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: Expected a working folder, found that it was removed.")
