"""Runs a command line as a process: exit codes 0 good, 2 the input is at fault, 1 our fault."""

import io
import logging
import sys

import typer

from knowformer.errors import KnowformerError
from knowformer.interfaces.console import err
from knowformer.interfaces.hints import NoteFormatter, as_typed
from knowformer.system.allocator import keep_freed_memory


def run_app(app: typer.Typer) -> None:
    """Runs the command; a user's mistake ends in one clear sentence, never in a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: no name ends a command
    keep_freed_memory()
    _show_log()
    try:
        app()
    except KnowformerError as error:
        said = as_typed(f"error: {error}")
        err.print(said, style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        err.print("stopped; the same command goes on from where it was ('train' with --resume)")
        sys.exit(130)


def _show_log() -> None:
    """Shows what the library has to say, such as that kernels are being compiled, on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(NoteFormatter())
    logger = logging.getLogger("knowformer")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
