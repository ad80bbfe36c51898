import sys

import pytest
from rich.console import Console

from knowformer.errors import MissingPackageError
from knowformer.tables import Column, TableView, Tabular


class Sample(Tabular):
    def table(self) -> TableView:
        columns = [
            Column("<name>"),
            Column("share", decimals=2, is_number=True),
            Column("known", words=("new", "old")),
            Column("more", is_shown=False),
        ]
        rows = [["[b] & :100:", 0.126, True, 1], [None, 1234.5, False, 2]]
        return TableView("[title] <i>", columns, rows, caption="[end]")


def test_names_that_look_like_markup_are_shown_as_they_are():
    html = Sample()._repr_html_()
    assert "&lt;name&gt;" in html
    assert "[b] &amp; :100:" in html
    assert "<i>" not in html
    console = Console(width=80, record=True, emoji=False)
    console.print(Sample())
    text = console.export_text()
    assert all(part in text for part in ("[b] & :100:", "[title] <i>", "[end]", "0.13", "1,234.50"))
    assert "old" in text
    assert "more" not in text + html


def test_printed_or_typed_it_is_a_table_in_plain_text():
    text = str(Sample())
    assert repr(Sample()) == text
    assert "\x1b" not in text
    assert "[b] & :100:" in text
    assert text.splitlines()[0] == "[title] <i>"


def test_in_a_notebook_names_stand_left_and_numbers_right():
    html = Sample()._repr_html_()
    assert '<th style="text-align:left">&lt;name&gt;</th><th>share</th>' in html
    assert "<td>1,234.50</td>" in html


def test_a_data_frame_has_raw_values_and_every_column():
    pytest.importorskip("pandas")
    frame = Sample().to_pandas()
    assert list(frame.columns) == ["<name>", "share", "known", "more"]
    assert frame["share"].tolist() == [0.126, 1234.5]
    assert frame["known"].tolist() == [True, False]


def test_without_pandas_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'knowformer\[frames\]'"):
        Sample().to_pandas()


def test_a_probability_is_not_shown_as_certain_unless_it_is():
    class Chances(Tabular):
        def table(self) -> TableView:
            columns = [Column("p", is_number=True, is_probability=True), Column("q")]
            rows = [[value, value] for value in (0.0, 0.0004, 0.0006, 0.9997, 1.0)]
            return TableView("chances", columns, rows)

    view = Chances().table()
    shown = [view.text(row)[0] for row in view.rows]
    assert shown == ["0.000", "<0.001", "0.001", ">0.999", "1.000"]
    assert view.text(view.rows[1])[1] == "0.000"
