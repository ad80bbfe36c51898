"""The library's advice as it is typed: `resume=True` becomes --resume.

The library names parameters, settings and calls in Python's words, in backticks. This is the one
place that knows which flag or command does the same; other code in backticks stays as it is.
"""

import logging
import re
from shlex import quote

from knowformer.errors import printable, shortened

FLAGS = {
    "assignments": "--set",
    "columns": "--columns",
    "delimiter": "--delimiter",
    "every_entity": "--every-entity",
    "force": "--force",
    "format": "--format",
    "graph": "--graph",
    "header": "--header",
    "host": "--host",
    "keep_literals": "--keep-literals",
    "max_minutes": "--max-minutes",
    "no_leaks": "--no-leaks",
    "out": "--out",
    "port": "--port",
    "quote": "--quote",
    "resume": "--resume",
    "skip_bad": "--skip-bad",
    "start_from": "--from",
    "store": "--store",
    "test": "--test",
    "time": "--temporal",
    "valid": "--valid",
}
SETTINGS = {
    "model.view_size": "--view-size",
    "training.max_epochs": "--max-epochs",
    "training.max_minutes": "--max-minutes",
}
COMMANDS = {
    r"catalog\.entries\(\)": "datasets",
    r"import_files\(\)": "import",
    r"train\(\)": "train",
    r"train\(graph\)": "train GRAPH",
    r"evaluate\(graph\)": "evaluate GRAPH",
    r"train\(None, '(.+)', resume=True\)": "train --resume",
    r"Reasoner\.from_pretrained\('(.+)'\)\.calibrate\(\)": "calibrate",
}
_CODE = re.compile(r"`([^`]+)`")
_PARAMETER = re.compile(r"(\w+)(?:=(?:True|'(\w+)'))?")
_SETTING = re.compile(r"(?:model|training)\.\w+=\w+")


def as_typed(text: str) -> str:
    """Returns a message with flags and commands in place of parameters, settings and calls."""
    return _CODE.sub(lambda code: _typed(code[1]) or code[0], text)


def _typed(code: str) -> str | None:
    if code in SETTINGS:
        return SETTINGS[code]
    parameter = _PARAMETER.fullmatch(code)
    if parameter and parameter[1] in FLAGS:
        return " ".join(filter(None, [FLAGS[parameter[1]], parameter[2]]))
    if _SETTING.fullmatch(code):
        return f"--set {code}"
    for call, command in COMMANDS.items():
        if match := re.fullmatch(call, code):
            return f"`{' '.join(['knowformer', command, *map(quote, match.groups())])}`"
    return None


class NoteFormatter(logging.Formatter):
    """The library's log as notes on the command line."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as a note."""
        lines = super().format(record).split("\n")  # several where an error was raised
        return as_typed("note: " + "\n".join(shortened(printable(line)) for line in lines))
