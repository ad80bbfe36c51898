"""The command as a whole: what it offers, and how it ends."""

import sys

import pytest
from typer.testing import CliRunner

import knowformer
from knowformer.interfaces import cli, entry


def test_every_command_has_help():
    names = {"train", "evaluate", "answer", "explain", "calibrate", "import", "audit", "datasets"}
    listed = CliRunner().invoke(cli.app, ["--help"])
    assert all(name in listed.output for name in names)
    for name in names:
        shown = CliRunner().invoke(cli.app, [name, "--help"])
        assert shown.exit_code == 0, name
        assert "--json" in shown.output


def test_the_version_is_the_packages():
    assert (
        CliRunner().invoke(cli.app, ["--version"]).output
        == f"knowformer {knowformer.__version__}\n"
    )


def test_a_mistake_ends_in_one_sentence_and_code_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["knowformer", "datasets", "get", "nation"])
    monkeypatch.setattr(entry, "keep_freed_memory", lambda: None)  # of this process it is not ours
    monkeypatch.setattr(entry, "_show_log", lambda: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert "'nations'" in printed.err
