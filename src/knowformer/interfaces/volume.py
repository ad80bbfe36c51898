"""How much a command says: ``--verbose`` and ``--quiet``, on every command."""

import logging
from typing import Annotated, Any

import typer

from knowformer.interfaces.console import err
from knowformer.interfaces.help import PlainGroup


def reset_volume() -> None:
    """Says as much as usual: progress, and notes of the library."""
    err.quiet = False
    _logger().setLevel(logging.INFO)


def _say_more(wanted: bool) -> None:
    if wanted:
        _logger().setLevel(logging.DEBUG)


def _say_less(wanted: bool) -> None:
    if wanted:
        err.quiet = True
        _logger().setLevel(logging.WARNING)


def _logger() -> logging.Logger:
    return logging.getLogger("knowformer")


def _volume(
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Print more: details, and where an error came from.",
            callback=_say_more,
            expose_value=False,
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print less: results, warnings and errors alone.",
            callback=_say_less,
            expose_value=False,
        ),
    ] = False,
) -> None:
    """Carries the options; never called."""
    del verbose, quiet


_app = typer.Typer(add_completion=False)
_app.command()(_volume)
_OPTIONS: list[Any] = typer.main.get_command(_app).params


def with_volume(command: Any) -> Any:
    """Returns a command with the options, before its help."""
    if command is not None and not any(option in command.params for option in _OPTIONS):
        command.params = [*command.params, *_OPTIONS]
    return command


class VolumeGroup(PlainGroup):
    """A group whose commands all have the options."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns a command by name, or None."""
        return with_volume(super().get_command(ctx, cmd_name))
