from pathlib import Path

import pytest

from knowformer.data.readers.rows import BadRows, Chunk, is_usable, shorten, why_unusable
from knowformer.errors import DataError


@pytest.mark.parametrize("name", ["a", " a b ", "ä", "a\u2028b", "x\ufeff", "日本"])
def test_any_name_on_one_line_is_usable(name: str) -> None:
    assert is_usable(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Expected a name as tail, got an empty one"),
        (" \u2003", "got an empty one"),
        ("a\tb", "without tabs and line breaks as tail, got 'a\\tb'"),
        ("a\r", "without tabs and line breaks"),
        ("caf\udce9", "Expected UTF-8 text, got byte 0xe9"),
        ("\ud800", "without tabs and line breaks"),
    ],
)
def test_a_name_that_is_not_usable_is_explained(name: str, reason: str) -> None:
    assert not is_usable(name)
    assert reason in why_unusable(name, "tail")[0]


def test_a_bad_row_ends_the_reading_or_is_listed() -> None:
    where = Chunk(Path("f.pq"), ((), (), ()), [4_000], "row").place(0)
    with pytest.raises(
        DataError, match=r"Expected x in row 4,000 of f.pq\. Do y\. Mend it, or skip"
    ):
        BadRows().add(where, "Expected x", " Do y.")
    listed = BadRows(skip=True)
    listed.add(where, "Expected x", " Do y.")
    assert [(row.place, row.reason) for row in listed.rows] == [(where, "Expected x")]


def test_long_text_is_cut_to_fit() -> None:
    assert shorten("x" * 60) == "x" * 60
    assert shorten("x" * 61) == "x" * 59 + "…"
