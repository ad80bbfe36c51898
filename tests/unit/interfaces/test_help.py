"""Help: plain, under headings, and at once."""

import re
import sys
from typing import Annotated, Any

import pytest
import typer

from knowformer.interfaces.app import app
from knowformer.interfaces.help import PlainCommand, PlainGroup, show_help


def greet(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whom.")],
    twice: Annotated[bool, typer.Option(help="Again.", rich_help_panel="How often")] = False,
    loud: Annotated[bool, typer.Option("--loud", help="For the deaf.")] = False,
    times: Annotated[int, typer.Option(min=1, metavar="N", help="How often.")] = 1,
) -> None:
    """Say hello.

    And no more.

    Examples:
        hello greet ann --loud  # a comment that is long enough to be wrapped, at night
        hello greet bob
    """
    del name, twice, loud, times


@pytest.fixture
def root() -> object:
    app = typer.Typer(cls=PlainGroup, rich_markup_mode=None)
    for name in ("greet", "wave"):
        app.command(name, cls=PlainCommand)(greet)
    return typer.main.get_command(app)


def shown(
    root: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *typed: str
) -> str | None:
    monkeypatch.setattr(sys, "argv", ["bin/hello", *typed])
    return capsys.readouterr().out if show_help(root) else None


def test_options_are_under_their_headings(
    root: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(root, monkeypatch, capsys, "greet", "--help")
    assert text is not None
    assert text.startswith("Usage: hello greet [OPTIONS] NAME\n")
    headings = [line for line in text.splitlines() if line.endswith(":")]
    assert headings == ["Arguments:", "How often:", "Options:", "Examples:"]
    assert "  NAME  Whom.\n" in text
    assert "How often.  [default: 1]\n" in text
    assert "<" not in text
    assert ">" not in text


def test_examples_come_last_as_they_are_typed(
    root: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(root, monkeypatch, capsys, "greet", "--help")
    assert text is not None
    assert text.endswith("at night\n  hello greet bob\n")
    assert text.count("hello greet bob") == 1


def test_commands_are_listed_with_their_whole_sentence(
    root: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(root, monkeypatch, capsys, "-h")
    assert text is not None
    assert "  greet  Say hello.\n  wave   Say hello.\n" in text


@pytest.mark.parametrize(
    "typed", [[], ["greet"], ["greet", "ann", "--help"], ["gret", "--help"], ["--help", "greet"]]
)
def test_all_else_is_left_to_typer(
    root: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: list[str],
) -> None:
    assert shown(root, monkeypatch, capsys, *typed) is None


def test_a_command_that_takes_anything_is_asked_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("knowformer.interfaces.plugins.GROUP", "no.such.group")
    assert shown(typer.main.get_command(app), monkeypatch, capsys, "reproduce", "-h") is None


def test_no_command_shows_a_type_of_python_or_of_click(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root: Any = typer.main.get_command(app)
    for name in root.commands:
        text = shown(root, monkeypatch, capsys, name, "--help") or ""
        assert not re.search(r"\b(INTEGER|TEXT|FLOAT|PATH|list\[)", text), name
