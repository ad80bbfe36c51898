"""Commands that other packages add to ``knowformer``, by entry points.

An entry point in the group ``knowformer.commands`` is a function with Typer's annotations; its name
is the command's:

    [project.entry-points."knowformer.commands"]
    reproduce = "knowformer_lab.command:reproduce"

Installed packages are scanned only for help or for a command that knowformer does not have itself,
and a function is imported only when its command is listed or run.
"""

from collections.abc import Callable
from typing import Any

import typer

from knowformer.errors import MissingPackageError, UserError
from knowformer.interfaces.help import PlainCommand
from knowformer.interfaces.volume import VolumeGroup, with_volume

GROUP = "knowformer.commands"
PACKAGES = {"reproduce": ("knowformer-lab", "run the paper's experiments")}
"""Commands of our own packages: what to install, and what for."""


class PluginGroup(VolumeGroup):
    """A group of commands, its own ones first, then those of installed packages."""

    def invoke(self, ctx: Any) -> Any:
        """Runs a command; Ctrl-C ends it with the sentence that it was raised with, if any."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            typer.echo(str(interrupt) or "Stopped.", err=True)
            raise typer.Exit(130) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of all commands."""
        from importlib.metadata import entry_points

        names = entry_points(group=GROUP).names
        return [*super().list_commands(ctx), *sorted(names - self.commands.keys())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns a command by name, or None."""
        return super().get_command(ctx, cmd_name) or with_volume(_find(cmd_name))


def _find(name: str) -> Any:
    """Returns the command that an installed package has under this name, or None."""
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=GROUP, name=name):
        try:
            return _command(name, entry_point.load())
        except (ImportError, AttributeError) as error:
            package = entry_point.dist.name if entry_point.dist else entry_point.module
            return _refusal(
                name,
                UserError(
                    f"Expected the command '{name}' in the package {package}, got: {error}. "
                    "Install that package again, or remove it."
                ),
            )
    if name in PACKAGES:
        package, purpose = PACKAGES[name]
        return _refusal(name, MissingPackageError(package, None, purpose))
    return None


def _refusal(name: str, error: UserError) -> Any:
    """Returns a command, hidden from help, that takes any arguments and raises an error."""

    def refuse() -> None:
        raise error

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return _command(name, refuse, hidden=True, add_help_option=False, context_settings=anything)


def _command(name: str, function: Callable[..., Any], **options: Any) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=PlainCommand, **options)(function)
    return typer.main.get_command(app)
