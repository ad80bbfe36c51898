"""Help in plain text, and at once: nothing is imported for it but typer itself.

A command's docstring is its help. What stands in it under ``Examples:`` comes last, as it is typed.
"""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

HELP_OPTIONS = ("-h", "--help")


EXAMPLES = "\n\nExamples:\n"
# Typer's words for a least value, which the option's own words say better.
_LEAST = re.compile(r"; x>=[0-9.]+(?=[;\]])|  \[x>=[0-9.]+\]")


class PlainCommand(TyperCommand):
    """A command whose options are listed under headings: their ``rich_help_panel``."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the words of the usage line, without braces around what is needed."""
        return [re.sub(r"[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes what the command does, its arguments and options, and examples."""
        self.format_usage(ctx, formatter)
        _write_text(self, formatter)
        _write_parameters(self, ctx, formatter)
        _write_examples(self, formatter)


class PlainGroup(TyperGroup):
    """A group of commands, whose help lists them as well."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes what the commands are for, what each does, options, and examples."""
        self.format_usage(ctx, formatter)
        _write_text(self, formatter)
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, (command.help or "").split("\n\n")[0])
                    for name, command in commands.items()
                    if command is not None and not command.hidden
                ]
            )
        _write_parameters(self, ctx, formatter)
        _write_examples(self, formatter)


def _write_text(command: Any, formatter: Any) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(inspect.cleandoc(command.help or "").partition(EXAMPLES)[0])


def _write_examples(command: Any, formatter: Any) -> None:
    examples = inspect.cleandoc(command.help or "").partition(EXAMPLES)[2]
    if examples:
        with formatter.section("Examples"):
            for line in inspect.cleandoc(examples).splitlines():
                formatter.write(f"  {line}\n")


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    general: list[tuple[str, str]] = []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        shown, text = record[0], _LEAST.sub("", record[1])
        if parameter.param_type_name == "argument":
            text = text.removesuffix("  [required]")  # the usage line says it
            sections["Arguments"].append((parameter.metavar or parameter.name, text))
        elif panel := getattr(parameter, "rich_help_panel", None):
            sections.setdefault(panel, []).append((shown, text))
        else:
            general.append((shown, text))
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
