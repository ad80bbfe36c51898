"""-v and -q, on every command: how much is said."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from knowformer.interfaces import app
from knowformer.interfaces.console import err, print_error, print_note
from knowformer.interfaces.volume import VolumeGroup, reset_volume, with_volume


@pytest.fixture(autouse=True)
def volume_as_it_was() -> Iterator[None]:
    logger = logging.getLogger("knowformer")
    level = logger.level
    yield
    reset_volume()
    logger.setLevel(level)


def commands(command: Any, name: str = "knowformer") -> Iterator[tuple[str, Any]]:
    yield name, command
    if not hasattr(command, "list_commands"):
        return
    context = typer.Context(command)
    for child in command.list_commands(context):
        yield from commands(command.get_command(context, child), f"{name} {child}")


def test_every_command_has_both_once() -> None:
    found = dict(commands(with_volume(typer.main.get_command(app.app))))
    assert {"knowformer train", "knowformer datasets", "knowformer datasets get"} <= found.keys()
    for name, command in found.items():
        names = [option for parameter in command.params for option in parameter.opts]
        assert names.count("--quiet") == names.count("-v") == 1, name


def greet() -> None:
    print_note("you are here")
    logging.getLogger("knowformer").debug("in detail")
    typer.echo("hello")


@pytest.mark.parametrize(
    ("arguments", "notes", "details"),
    [([], True, False), (["-q"], False, False), (["--verbose"], True, True)],
)
def test_notes_details_and_results(
    arguments: list[str], notes: bool, details: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = typer.Typer(cls=VolumeGroup)
    app.command("greet")(greet)
    app.command("other")(greet)
    reset_volume()
    done = CliRunner().invoke(app, ["greet", *arguments])
    assert done.stdout == "hello\n"
    assert ("you are here" in done.stderr) == notes
    assert ("in detail" in caplog.text) == details


def test_an_error_is_said_however_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    err.quiet = True
    print_error("Expected more.")
    assert capsys.readouterr().err == "error: Expected more.\n"
