"""Ctrl-C at a moment of one's own choosing."""

import logging
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

_logger = logging.getLogger(__name__)


@contextmanager
def delayed_interrupt() -> Generator[Callable[[], bool]]:
    """Yields a function that tells whether Ctrl-C was pressed; pressed again, it stops at once.

    In another thread than the main one, or where the host has a handler of its own, Ctrl-C does
    what it always does.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield lambda: False
        return
    times = 0

    def take(*_: Any) -> None:
        nonlocal times
        times += 1
        if times > 1:
            raise KeyboardInterrupt
        _logger.info("Stopping after this step, so that it is kept; Ctrl-C again stops at once.")

    signal.signal(signal.SIGINT, take)
    try:
        yield lambda: times > 0
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
