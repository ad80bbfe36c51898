"""Progress where there is no terminal: a plain line now and then."""

import io

import pytest
from rich.console import Console

from knowformer.interfaces import progress
from knowformer.interfaces.progress import Counting, import_progress


def test_counted_work_is_told_in_lines_that_are_not_too_many(monkeypatch: pytest.MonkeyPatch):
    said = io.StringIO()
    with Counting(Console(file=said), "answer") as count:
        count(1, 4000)
        assert said.getvalue() == ""  # too soon
        monkeypatch.setattr(progress, "PLAIN_LINE_SECONDS", -1.0)
        count(1234, 4000)
    assert said.getvalue() == "answer 1,234/4,000  0:00\n"


def test_an_import_is_quiet_without_a_terminal():
    said = io.StringIO()
    with import_progress(Console(file=said)) as tell:
        tell("read", 10, 100)
    assert said.getvalue() == ""
