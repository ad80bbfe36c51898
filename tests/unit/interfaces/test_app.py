"""The command as a whole: what it offers, and how it ends."""

import json
import subprocess
import sys
from contextlib import nullcontext
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import knowformer
from knowformer.interfaces import app, cli, entry
from knowformer.system import interrupts


def test_every_command_has_help():
    names = {*app.COMMANDS, "datasets"}
    listed = CliRunner().invoke(app.app, ["--help"])
    assert all(name in listed.output for name in names)
    for name in names:
        shown = CliRunner().invoke(app.app, [name, "--help"])
        assert shown.exit_code == 0, name
        assert ("--json" in shown.output) == (name != "serve"), name  # which speaks HTTP


def parameters(command: Any) -> list[Any]:
    """All parameters of a command and of those under it, those of other packages too."""
    found = list(command.params)
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for name in command.list_commands(context):
            found += parameters(command.get_command(context, name))
    return found


def test_what_an_option_takes_is_said_in_words():
    for parameter in parameters(typer.main.get_command(app.app)):
        shown, _ = parameter.get_help_record(typer.Context(typer.main.get_command(app.app)))
        is_flag = getattr(parameter, "is_flag", False)
        assert is_flag or parameter.metavar or "|" in shown, shown


HEAVY = {"optuna", "torch", "numba", "numpy", "pydantic", "matplotlib", "pyarrow"}
LOOK = (
    "import sys; from knowformer.interfaces.cli import main\n"
    "try: main()\n"
    f"finally: sys.stderr.write(' '.join({HEAVY!r} & sys.modules.keys()))"
)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["train", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]):
    shown = subprocess.run(
        [sys.executable, "-c", LOOK, *arguments], capture_output=True, text=True, timeout=60
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(("knowformer ", "Usage: "))


def test_the_version_is_the_packages():
    assert (
        CliRunner().invoke(app.app, ["--version"]).output
        == f"knowformer {knowformer.__version__}\n"
    )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    """Runs a command in this process and returns its exit code."""

    def run(*arguments: str) -> object:
        monkeypatch.setattr(sys, "argv", ["knowformer", *arguments])
        # Of this process they are not ours.
        monkeypatch.setattr(entry, "keep_freed_memory", lambda: None)
        monkeypatch.setattr(entry, "_show_log", lambda: None)
        monkeypatch.setattr(interrupts, "ending_at_once", nullcontext)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code

    return run


def test_a_mistake_ends_in_one_sentence_and_code_two(run: Any, capsys: pytest.CaptureFixture[str]):
    assert run("datasets", "get", "nation") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert "'nations'" in printed.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["datasets", "get", "nation"], "Did you mean 'nations'?"),
        (["evaluate"], "Missing argument"),
        (["train", "nations", "--seed", "x"], "'--seed'"),
    ],
    ids=["ours", "missing", "no number"],
)
def test_with_json_a_mistake_is_json(
    run: Any, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
):
    assert run(*arguments, "--json") == 2
    printed = capsys.readouterr()
    assert printed.err == ""
    said = json.loads(printed.out)
    assert list(said) == ["error"]
    assert says in said["error"]


def test_with_json_a_good_command_ends_well(run: Any, capsys: pytest.CaptureFixture[str]):
    assert not run("datasets", "--json")
    assert json.loads(capsys.readouterr().out)
