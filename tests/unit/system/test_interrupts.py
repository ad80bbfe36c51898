import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from knowformer.system.interrupts import delayed_interrupt

pytestmark = pytest.mark.usefixtures("default_interrupt")


def test_the_first_ctrl_c_waits_and_the_second_does_not() -> None:
    with delayed_interrupt() as is_interrupted:
        assert not is_interrupted()
        signal.raise_signal(signal.SIGINT)
        assert is_interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_host_stays() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with delayed_interrupt() as is_interrupted:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert not is_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone() -> None:
    found: list[object] = []

    def look() -> None:
        with delayed_interrupt() as is_interrupted:
            found.extend([signal.getsignal(signal.SIGINT), is_interrupted()])

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler, False]


ENDS = """
import pathlib, signal, sys
from knowformer.storage.atomic_files import atomic_path
from knowformer.system.interrupts import ending_at_once, farewell
folder = pathlib.Path(sys.argv[1])
with ending_at_once(), farewell(lambda: "Stopped; all is kept."):
    with atomic_path(folder / "file") as temporary:
        temporary.write_text("half")
        signal.raise_signal(signal.SIGINT)
"""


def test_ctrl_c_ends_a_command_at_once_with_a_sentence_and_nothing_half_written(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Stopped; all is kept.\n"
    assert list(tmp_path.iterdir()) == []
