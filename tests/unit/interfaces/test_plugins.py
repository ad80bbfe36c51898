"""Commands of other packages, installed for real in a folder of their own."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from knowformer.errors import KnowformerError
from knowformer.interfaces.app import app

MODULE = '''
from typing import Annotated
import typer

def greet(name: Annotated[str, typer.Argument(help="Whom.")], twice: bool = False) -> None:
    """Say hello."""
    typer.echo(f"hello {name}" * (1 + twice))
'''


def install(folder: Path, **commands: str) -> None:
    """Makes the folder an installed package with these commands."""
    (folder / "greetings.py").write_text(MODULE, "utf-8")
    metadata = folder / "greetings-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greetings\nVersion: 1.0\n")
    lines = [f"{name} = {target}" for name, target in commands.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[knowformer.commands]", *lines]))


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, prog_name="knowformer")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with installed packages, beside those that are installed here."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "greetings", raising=False)
    return tmp_path


def test_a_command_of_another_package_is_listed_and_run(packages: Path) -> None:
    install(packages, greet="greetings:greet")
    listed = invoke("--help")
    assert listed.exit_code == 0
    assert "Say hello." in listed.output
    assert "Measure a model" in listed.output
    done = invoke("greet", "ann", "--twice")
    assert (done.exit_code, done.output) == (0, "hello annhello ann\n")
    assert "Usage: knowformer greet" in invoke("greet", "-h").output


def test_a_package_is_imported_only_for_its_own_command(packages: Path) -> None:
    install(packages, greet="greetings:greet")
    assert invoke("datasets", "--json").exit_code == 0
    assert "greetings" not in sys.modules
    assert invoke("greet", "ann").exit_code == 0
    assert "greetings" in sys.modules


def test_no_package_replaces_a_command_of_knowformer(packages: Path) -> None:
    install(packages, datasets="greetings:greet")
    assert invoke("--help").output.count("datasets") == 1
    assert "umls" in invoke("datasets", "--json").output


@pytest.mark.parametrize("target", ["greetings:nothing", "no_such_module:greet"])
def test_a_broken_package_is_named_when_its_command_runs(packages: Path, target: str) -> None:
    install(packages, greet=target)
    assert invoke("--help").exit_code == 0
    error = invoke("greet", "ann").exception
    assert isinstance(error, KnowformerError)
    assert error.exit_code == 2
    assert "'greet' in the package greetings" in str(error)


@pytest.mark.parametrize("arguments", [[], ["inductive", "--seed", "1"], ["--help"]])
def test_without_the_lab_reproduce_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    invoke("--help")  # imports what rich prints with: from here on no package is found
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    done = invoke("reproduce", *arguments)
    assert isinstance(done.exception, KnowformerError)
    assert done.exception.exit_code == 2
    assert done.output == ""
    assert str(done.exception).endswith("Install it with pip install knowformer-lab.")
    listed = invoke("--help")
    assert listed.exit_code == 0
    assert "reproduce" not in listed.output


def test_an_unknown_command_is_refused(packages: Path) -> None:
    install(packages, greet="greetings:greet")
    done = invoke("gret")
    assert done.exit_code == 2
    assert "No such command" in done.output
