"""Shared by all commands: two consoles, how they print, and common options."""

import codecs
import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from knowformer.errors import printable

# No emoji: an entity may be called :smile:.
out = Console(emoji=False)
err = Console(stderr=True, emoji=False)

RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="The run folder that 'train' made.")
]
RunOrGraphArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="The run folder that 'train' made; or a graph (a file, a folder or a catalogue name), "
        "on which the model that ships with knowformer answers, without training.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of a table; errors too.")
]
ThreadsOption = Annotated[
    int,
    typer.Option(
        min=0, metavar="N", help="CPU threads; all cores if not given.", show_default=False
    ),
]
GraphOption = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="GRAPH",
        help="Ask about another graph that has the same relations: a file, a folder or a catalogue "
        "name.",
    ),
]


def typed_command() -> str:
    """Returns the command that is running, as it was typed."""
    return shlex.join(sys.argv)


def _lines(text: str) -> str:
    """Returns lines that do to a terminal what they say; a name may hold its commands."""
    return "\n".join(map(printable, text.split("\n")))


def print_line(text: str) -> None:
    """Prints text as it is: a path may hold brackets, and must not be wrapped."""
    out.print(_lines(text), markup=False, highlight=False, soft_wrap=True)


def print_note(text: str) -> None:
    """Prints a remark to standard error, as it is."""
    err.print(_lines(f"note: {text}"), markup=False, highlight=False, soft_wrap=True)


def print_error(sentence: str) -> None:
    """Prints what went wrong to standard error, however quiet the command is."""
    err.quiet = False
    text = _lines(f"error: {sentence}")
    err.print(text, style="red", markup=False, highlight=False, soft_wrap=True)


class JsonOutput:
    """Whether a command has printed its JSON: standard output is one document, never two."""

    is_printed = False


def print_json(content: Any) -> None:
    """Prints JSON: names as they are where they can be printed, else as JSON's own escapes."""
    JsonOutput.is_printed = True
    ascii_only = codecs.lookup(sys.stdout.encoding or "ascii").name != "utf-8"
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=ascii_only) + "\n")
