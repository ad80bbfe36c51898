"""Runs a command line as a process: exit codes 0 good, 2 the input is at fault, 1 our fault."""

import io
import logging
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import typer

from knowformer.errors import (
    KnowformerError,
    StorageError,
    UserError,
    printable,
    shortened,
)
from knowformer.interfaces.console import JsonOutput, print_error, print_json
from knowformer.interfaces.help import show_help
from knowformer.interfaces.hints import NoteFormatter, as_typed
from knowformer.interfaces.volume import reset_volume, with_volume
from knowformer.system.allocator import keep_freed_memory

# What the parser of the command line raises, by whichever name typer brings it along.
PIPE_CLOSED = 141  # as of a process that SIGPIPE has ended
OUT_OF_MEMORY = "can't allocate memory"  # in what torch raises

UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])


def run_app(app: typer.Typer) -> None:
    """Runs the command; a user's mistake ends in one clear sentence, never in a traceback.

    With ``--json`` the sentence is that of a JSON object, ``{"error": ...}``, on standard output,
    unless the command's own object is there already.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no name ends a command
    keep_freed_memory()
    _show_log()
    reset_volume()
    JsonOutput.is_printed = False
    as_json = "--json" in sys.argv[1:]
    try:
        _check_working_folder()
        command = with_volume(typer.main.get_command(app))
        code = 0 if show_help(command) else _call(command)
        sys.stdout.flush()  # while it can still be said that this fails
        sys.exit(code)
    except UsageError as error:
        lines = error.message.split("\n")  # several where the message is the command's help
        error.message = "\n".join(shortened(printable(line)) for line in lines)
        if as_json:
            _say(error.format_message(), as_json=True)
        else:
            error.show()  # with the command's usage
        sys.exit(2)
    except Exception as error:  # noqa: BLE001 - what none of our functions has foreseen as well
        # As text: a record that held the error would keep the files of its frames open.
        raised = "".join(traceback.format_exception(error))
        logging.getLogger("knowformer").debug("Raised here:\n%s", raised)
        if isinstance(error, BrokenPipeError):  # such as `| head`, which has seen enough
            _leave_output()
            sys.exit(PIPE_CLOSED)
        told = error if isinstance(error, KnowformerError) else foreseen(error)
        _say(as_typed(str(told)), as_json=as_json)
        sys.exit(told.exit_code)


def _call(command: Any) -> Any:
    """Calls a command; a closed pipe, of which typer and rich make exit code 1, is raised."""
    try:
        return command(standalone_mode=False)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            raise ended.__context__ from None
        raise


def _check_working_folder() -> None:
    try:
        Path.cwd()
    except OSError:
        raise UserError(
            "Expected a working folder, found that it was removed. Change to one that is there."
        ) from None


def foreseen(error: Exception) -> KnowformerError:
    """Returns what to say of an error that no function has foreseen: whose fault it is."""
    text = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(".")
    if isinstance(error, MemoryError) or OUT_OF_MEMORY in text:
        return UserError(
            f"Expected enough memory, got '{text}'. Take a smaller model, fewer queries at a time "
            "or a part of the graph."
        )
    if isinstance(error, RecursionError):
        return UserError("Expected a path or a file of reasonable depth, got one nested too deep.")
    if isinstance(error, OSError) and error.strerror:
        named = error.filename if isinstance(error.filename, str) else "standard output"
        return StorageError(
            f"Expected to read or write {named}, got '{error.strerror}'. Free some space, or "
            "choose another file."
        )
    return KnowformerError(
        f"Expected this to work, got {text}. This is a fault of knowformer; --verbose shows where."
    )


def _leave_output() -> None:
    """Nobody reads standard output any more: what is buffered goes nowhere, without complaint."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _say(sentence: str, *, as_json: bool) -> None:
    with suppress(OSError):  # nowhere to say it
        if as_json and not JsonOutput.is_printed:
            print_json({"error": sentence})
            sys.stdout.flush()
        else:
            print_error(sentence)
    _leave_output_if_broken()


def _leave_output_if_broken() -> None:
    """Python would flush standard output once more, and fail."""
    try:
        sys.stdout.flush()
    except OSError:
        _leave_output()


def _show_log() -> None:
    """Shows what the library has to say, such as that kernels are being compiled, on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(NoteFormatter())
    logging.getLogger("knowformer").addHandler(handler)
