"""Help in plain text, and at once: nothing is imported for it but typer itself."""

import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

HELP_OPTIONS = ("-h", "--help")


class PlainCommand(TyperCommand):
    """A command whose options are listed under headings: their ``rich_help_panel``."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options."""
        _write_parameters(self, ctx, formatter)


class PlainGroup(TyperGroup):
    """A group of commands, whose help lists them as well."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes options and commands."""
        _write_parameters(self, ctx, formatter)
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, (command.help or "").split("\n\n")[0])
                    for name, command in commands.items()
                    if command is not None and not command.hidden
                ]
            )


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    general: list[tuple[str, str]] = []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            sections["Arguments"].append((parameter.metavar or parameter.name, record[1]))
        elif panel := getattr(parameter, "rich_help_panel", None):
            sections.setdefault(panel, []).append(record)
        else:
            general.append(record)
    for heading, records in [*sections.items(), ("Options", general)]:
        if records:
            with formatter.section(heading):
                formatter.write_dl(records)


def show_help(root: Any) -> bool:
    """Shows help if it is all that was typed: ``[COMMAND]... --help``.

    Typer would do it too, after loading pydantic to validate options that nobody gave.

    Returns:
        Whether help was shown.
    """
    *names, last = sys.argv[1:] or [""]
    if last not in HELP_OPTIONS:
        return False
    command, program = root, Path(sys.argv[0]).name
    context = typer.Context(root, info_name=program, help_option_names=list(HELP_OPTIONS))
    for name in names:
        if not isinstance(command, TyperGroup):
            return False
        command = command.get_command(context, name)
        if command is None or not command.add_help_option:
            return False
        context = typer.Context(command, parent=context, info_name=name)
    typer.echo(command.get_help(context))
    return True
