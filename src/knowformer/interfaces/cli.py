"""Runs ``knowformer``, with next to no imports: Ctrl-C is heeded from the first moment on."""

from knowformer.system.interrupts import ending_at_once
from knowformer.system.streams import open_missing_streams


def main() -> None:
    """Runs ``knowformer``."""
    open_missing_streams()
    with ending_at_once():
        from knowformer.interfaces.app import app
        from knowformer.interfaces.entry import run_app

        run_app(app)
