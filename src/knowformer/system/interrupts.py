"""Ctrl-C: at a moment of one's own choosing, or at once with a sentence."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from knowformer.storage.atomic_files import remove_unfinished

EXIT_CODE = 130  # of a process that Ctrl-C has ended, by convention
STOPPED = "Stopped. What was finished is kept; the same command starts again."

_logger = logging.getLogger(__name__)
_farewells: list[Callable[[], str]] = []


@contextmanager
def ending_at_once() -> Generator[None]:
    """Lets Ctrl-C end the process with one line, wherever it is: no exception is raised.

    An exception would be raised between any two instructions, of an import or of code that other
    languages call back, where it becomes a traceback or worse. Temporary files are removed. Where
    the host has a handler of its own, it stays.
    """
    if not _is_main() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    except SystemExit:
        raise  # the handler stays until the process is gone
    except BaseException:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise


@contextmanager
def farewell(say: Callable[[], str]) -> Generator[None]:
    """While inside, this is what is said when Ctrl-C ends the process: what is kept, what next."""
    _farewells.append(say)
    try:
        yield
    finally:
        _farewells.remove(say)


def _end(*_: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough
    sentence = STOPPED
    with suppress(Exception):  # whatever it asks may be half imported
        sentence = _farewells[-1]() if _farewells else STOPPED
    remove_unfinished()
    cursor = "\x1b[?25h\r" if _is_terminal(2) else ""  # a live line hides it
    with suppress(OSError):
        os.write(2, f"{cursor}{sentence}\n".encode(errors="backslashreplace"))
    os._exit(EXIT_CODE)


def _is_terminal(handle: int) -> bool:
    with suppress(OSError):
        return os.isatty(handle)
    return False


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def delayed_interrupt(*others: signal.Signals) -> Generator[Callable[[], bool]]:
    """Yields a function that tells whether Ctrl-C was pressed; pressed again, it stops at once.

    In another thread than the main one, or where the host has a handler of its own, Ctrl-C does
    what it always does.

    Args:
        others: signals besides that of Ctrl-C to take in the same way.
    """
    before = signal.getsignal(signal.SIGINT)
    if not _is_main() or before not in (signal.default_int_handler, _end):
        yield lambda: False
        return
    times = 0

    def take(number: int, frame: Any) -> None:
        nonlocal times
        times += 1
        if times > 1 and callable(before):
            before(number, frame)
        _logger.info("Stopping after this step, so that it is kept; Ctrl-C again stops at once.")

    replaced = {number: signal.signal(number, take) for number in (signal.SIGINT, *others)}
    try:
        yield lambda: times > 0
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
