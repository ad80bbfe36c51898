"""The ``knowformer`` command. Exit codes: 0 good, 2 the input is at fault, 1 our fault."""

import io
import logging
import sys
from typing import Annotated

import typer

from knowformer import __version__
from knowformer.errors import KnowformerError
from knowformer.interfaces.commands import (
    answer,
    audit,
    calibrate,
    datasets,
    evaluate,
    explain,
    import_data,
    train,
)
from knowformer.interfaces.commands.reproduce import reproduce_command
from knowformer.interfaces.console import err, out
from knowformer.system.allocator import keep_freed_memory

app = typer.Typer(
    help="Reason over knowledge graphs: train a KnowFormer, evaluate it, ask it questions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"knowformer {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Reason over knowledge graphs: train a KnowFormer, evaluate it, ask it questions."""
    del version  # handled by its callback


app.command("train")(train.command)
app.command("evaluate")(evaluate.command)
app.command("answer")(answer.command)
app.command("explain")(explain.command)
app.command("calibrate")(calibrate.command)
app.command("import")(import_data.command)
app.command("audit")(audit.command)
app.command("reproduce")(reproduce_command)
app.add_typer(datasets.app, name="datasets")


def _show_log() -> None:
    """Shows what the library has to say, such as that kernels are being compiled, on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("note: %(message)s"))
    logger = logging.getLogger("knowformer")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def main() -> None:
    """Runs the command; a user's mistake ends in one clear sentence, never in a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: no name ends a command
    keep_freed_memory()
    _show_log()
    try:
        app()
    except KnowformerError as error:
        err.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        err.print("stopped; the same command goes on from where it was ('train' with --resume)")
        sys.exit(130)


if __name__ == "__main__":
    main()
