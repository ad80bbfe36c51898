"""Names are printed as they are, whatever they hold and wherever they go."""

import io
import json
import sys

import pytest

from knowformer.interfaces.console import print_json, print_line, print_note


@pytest.mark.parametrize(("encoding", "escaped"), [("utf-8", False), ("ascii", True)])
def test_json_holds_names_as_they_are_where_they_can_be_printed(
    encoding: str, escaped: bool, monkeypatch: pytest.MonkeyPatch
):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    print_json({"name": "Łódź"})
    sys.stdout.flush()
    printed = raw.getvalue().decode(encoding)
    assert json.loads(printed) == {"name": "Łódź"}
    assert ("\\u" in printed) is escaped


def test_lines_are_neither_wrapped_nor_read_as_markup(capsys: pytest.CaptureFixture[str]):
    text = "[bold]:smile: " + "x" * 300
    print_line(text)
    print_note(text)
    printed = capsys.readouterr()
    assert printed.out == f"{text}\n"
    assert printed.err == f"note: {text}\n"
