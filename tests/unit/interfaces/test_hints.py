"""Advice in the library's words, and the same as it is typed."""

import ast
import inspect
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import knowformer
from knowformer import Reasoner, train
from knowformer.importing import Dialect, ImportOptions, SplitSizes, import_files
from knowformer.interfaces.app import app
from knowformer.interfaces.commands.serve import command as serve
from knowformer.interfaces.hints import COMMANDS, FLAGS, SETTINGS, NoteFormatter, as_typed
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import build_config, flat_settings
from knowformer.tuning.tune import tune

LIBRARY = Path(knowformer.__file__).parent
SPEAKS_COMMAND_LINE = {"interfaces", "reproduction"}


def options(command: Any) -> set[str]:
    names = {name for parameter in command.params for name in parameter.opts}
    return names.union(*map(options, getattr(command, "commands", {}).values()))


OPTIONS = {name for name in options(get_command(app)) if name.startswith("--")}


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("Choose another `out`.", "Choose another --out."),
        ("or replace it with `force=True`.", "or replace it with --force."),
        ("Import it with `format='parquet'`.", "Import it with --format parquet."),
        ("Train with `training.hide=links`.", "Train with --set training.hide=links."),
        ("Give `training.max_epochs` in all.", "Give --max-epochs in all."),
        ("`catalog.entries()` lists all 9.", "`knowformer datasets` lists all 9."),
        (
            "go on: `train(None, 'my run', resume=True)`.",
            "go on: `knowformer train --resume 'my run'`.",
        ),
        ("Fit: `Reasoner.from_pretrained('r').calibrate()`.", "Fit: `knowformer calibrate r`."),
        ("got `anything` else.", "got `anything` else."),
    ],
)
def test_code_becomes_what_is_typed(said: str, typed: str) -> None:
    assert as_typed(said) == typed


def test_the_log_is_shown_as_it_is_typed() -> None:
    record = logging.LogRecord(
        "knowformer", logging.INFO, "", 0, "Use %s.", ("`resume=True`",), None
    )
    assert NoteFormatter().format(record) == "note: Use --resume."


def messages() -> Iterator[tuple[Path, str]]:
    """The strings of the library below the command line, without docstrings."""
    for path in LIBRARY.rglob("*.py"):
        if path.relative_to(LIBRARY).parts[0] in SPEAKS_COMMAND_LINE:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and id(node) not in statements:
                yield path, node.value


def test_the_library_does_not_speak_command_line() -> None:
    commands = "|".join(sorted(get_command(app).commands))
    flags = "|".join(sorted(OPTIONS))
    typed = re.compile(rf"(?<![\w-])(?:{flags})\b|knowformer (?:{commands})\b")
    assert [(path.name, text) for path, text in messages() if typed.search(text)] == []


def test_every_flag_exists_and_says_what_a_parameter_does() -> None:
    assert {*FLAGS.values(), *SETTINGS.values()} <= OPTIONS
    assert SETTINGS.keys() <= flat_settings(RunConfig()).keys()
    options = (ImportOptions, Dialect, SplitSizes)
    callables = (*options, import_files, train, tune, build_config, Reasoner.missing_facts, serve)
    assert set(FLAGS) <= {name for each in callables for name in inspect.signature(each).parameters}


def test_every_hint_is_used() -> None:
    source = "\n".join(text for _, text in messages())
    assert [name for name in FLAGS if not re.search(rf"`{name}[`=]", source)] == []
    calls = [call.split(r"\(")[0].replace("\\", "") for call in COMMANDS]
    assert [call for call in calls if f"`{call}(" not in source] == []
