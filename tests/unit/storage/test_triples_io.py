import re
from pathlib import Path

import pytest

from knowformer.errors import DataError
from knowformer.storage.triples_io import read_edges, read_triples


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "train.txt"
    path.write_bytes(content)
    return path


def error_of(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_triples(path)
    return str(caught.value)


def test_triples_are_read_in_order_with_repetitions(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\tr\tb\nb\ts\tc\na\tr\tb\n")
    assert read_triples(path) == [("a", "r", "b"), ("b", "s", "c"), ("a", "r", "b")]


@pytest.mark.parametrize(
    "content",
    [
        b"a\tr\tb\nc\tr\td",
        b"a\tr\tb\r\nc\tr\td\r\n",
        b"\xef\xbb\xbfa\tr\tb\nc\tr\td\n",
        b"\n\na\tr\tb\n  \n\nc\tr\td\n\n\n",
    ],
    ids=["no newline at the end", "CRLF", "BOM", "blank lines"],
)
def test_files_from_any_editor_are_read(tmp_path: Path, content: bytes) -> None:
    assert read_triples(written(tmp_path, content)) == [("a", "r", "b"), ("c", "r", "d")]


def test_commas_separate_where_the_name_ends_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text('Head,relation,tail\n"Oslo, Norway",in,Norway\n', "utf-8")
    assert read_triples(path) == [("Oslo, Norway", "in", "Norway")]
    path.write_text("a,r,b\na,r,b,c\n", "utf-8")
    with pytest.raises(DataError, match=r"comma-separated .*head,relation,tail.*csv:2.*quotes"):
        read_triples(path)


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_a_name_keeps_characters_that_unicode_calls_line_breaks(
    tmp_path: Path, character: str
) -> None:
    name = f"one{character}name"
    path = written(tmp_path, f"{name}\tr\t{name}\n".encode())
    assert read_triples(path) == [(name, "r", name)]


def test_names_keep_their_spaces_and_alphabets(tmp_path: Path) -> None:
    path = written(tmp_path, " 東京\tis in \tŁódź (old)\n".encode())
    assert read_triples(path) == [(" 東京", "is in ", "Łódź (old)")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"only two\tcolumns", "got 2"),
        (b"one column", "got 1"),
        (b"a\tr\tb\tc", "got 4"),
        (b"\tr\tb", "a name as head"),
        (b"a\t \tb", "a name as relation"),
        (b"a\tr\t", "a name as tail"),
        (b"a\tr\t\xff\xfe", "got byte 0xff"),
    ],
)
def test_a_bad_line_is_named_by_path_and_line(tmp_path: Path, line: bytes, expected: str) -> None:
    path = written(tmp_path, b"a\tr\tb\n\nb\tr\tc\n" + line + b"\nc\tr\td\n")
    message = error_of(path)
    assert expected in message
    assert re.search(rf"{re.escape(str(path))}:4\b", message)


def test_a_name_with_a_tab_is_explained(tmp_path: Path) -> None:
    assert "must not contain a tab" in error_of(written(tmp_path, b"a\tr\tb\tc\n"))


@pytest.mark.parametrize(
    "content", [b"head,relation,tail\n", b"<http://a> <http://b> <http://c> .\n", b"PAR1\x00\xff"]
)
def test_other_formats_are_sent_to_import(tmp_path: Path, content: bytes) -> None:
    assert "`import_files()` reads" in error_of(written(tmp_path, content))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    assert f"triples in {path}, got an empty file" in error_of(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert f"{tmp_path / 'none.txt'}, found none" in error_of(tmp_path / "none.txt")
    assert f"a readable file at {tmp_path}" in error_of(tmp_path)


def test_edges_become_triples_of_one_relation(tmp_path: Path) -> None:
    assert read_edges(written(tmp_path, b"1\t2\n2\t3\n"), "cites") == [
        ("1", "cites", "2"),
        ("2", "cites", "3"),
    ]


def test_a_bad_edge_is_named_by_path_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, b"1\t2\n2\t3\t4\n")
    with pytest.raises(DataError, match=re.escape(f"(u<TAB>v), got 3 at {path}:2")):
        read_edges(path, "cites")
