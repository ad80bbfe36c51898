"""Runs ``knowformer``, with next to no imports: Ctrl-C is heeded from the first moment on."""

import os
import signal

STOPPED = b"Stopped before anything was begun.\n"


def main() -> None:
    """Runs ``knowformer``."""
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_ours:
            signal.signal(signal.SIGINT, _end)  # what heeds it later takes a moment to import
    except ValueError:  # not the main thread
        is_ours = False
    from knowformer.system.interrupts import ending_at_once
    from knowformer.system.streams import open_missing_streams

    open_missing_streams()
    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with ending_at_once():
        from knowformer.interfaces.app import app
        from knowformer.interfaces.entry import run_app

        run_app(app)


def _end(*_: object) -> None:
    try:
        os.write(2, STOPPED)
    finally:
        os._exit(130)
