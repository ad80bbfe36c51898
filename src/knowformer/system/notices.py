"""Notices about work that takes long enough for someone to wonder."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def if_slow(say: Callable[[], None], seconds: float = 1.5) -> Generator[None]:
    """Calls ``say``, from another thread, when what is inside takes longer than so many seconds."""
    notice = threading.Timer(seconds, say)
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
