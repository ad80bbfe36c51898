"""Runs a command line as a process: exit codes 0 good, 2 the input is at fault, 1 our fault."""

import io
import logging
import sys
import traceback
from typing import cast

import typer

from knowformer.errors import KnowformerError
from knowformer.interfaces.console import JsonOutput, print_error, print_json
from knowformer.interfaces.help import show_help
from knowformer.interfaces.hints import NoteFormatter, as_typed
from knowformer.interfaces.volume import reset_volume, with_volume
from knowformer.system.allocator import keep_freed_memory

# What the parser of the command line raises, by whichever name typer brings it along.
UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])


def run_app(app: typer.Typer) -> None:
    """Runs the command; a user's mistake ends in one clear sentence, never in a traceback.

    With ``--json`` the sentence is that of a JSON object, ``{"error": ...}``, on standard output,
    unless the command's own object is there already.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: no name ends a command
    keep_freed_memory()
    _show_log()
    reset_volume()
    JsonOutput.is_printed = False
    as_json = "--json" in sys.argv[1:]
    try:
        command = with_volume(typer.main.get_command(app))
        if show_help(command):
            sys.exit()
        sys.exit(command(standalone_mode=not as_json))  # typer prints mistakes in typing itself
    except KnowformerError as error:
        # As text: a record that held the error would keep the files of its frames open.
        raised = "".join(traceback.format_exception(error))
        logging.getLogger("knowformer").debug("Raised here:\n%s", raised)
        _say(as_typed(str(error)), as_json=as_json)
        sys.exit(error.exit_code)
    except UsageError as error:
        _say(error.format_message(), as_json=as_json)
        sys.exit(2)


def _say(sentence: str, *, as_json: bool) -> None:
    if as_json and not JsonOutput.is_printed:
        print_json({"error": sentence})
    else:
        print_error(sentence)


def _show_log() -> None:
    """Shows what the library has to say, such as that kernels are being compiled, on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(NoteFormatter())
    logging.getLogger("knowformer").addHandler(handler)
