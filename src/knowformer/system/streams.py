"""Standard streams that a process was started without."""

import io
import os
import sys


def open_missing_streams() -> None:
    """Gives closed standard streams something to stand for, before a file takes their numbers.

    What is written to standard output then fails, as it should; there is nowhere to say that
    standard error is closed.
    """
    modes = {0: os.O_RDONLY, 1: os.O_RDONLY, 2: os.O_WRONLY}
    for number, mode in modes.items():
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free, which is this one
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8")
