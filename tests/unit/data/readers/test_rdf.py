import io
from pathlib import Path

import pytest

from knowformer.data.readers.rdf import LineByLine, read_rdf, short_names
from knowformer.data.readers.reading import Reading
from knowformer.errors import MissingPackageError

pytest.importorskip("pyoxigraph")
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


def read(path: Path, content: str, reading: Reading) -> list[tuple[str, ...]]:
    path.write_text(content, "utf-8")
    chunks = read_rdf(path, reading, syntax="TURTLE")
    return [row for chunk in chunks for row in zip(*chunk.columns, strict=True)]


def test_blank_nodes_of_two_files_are_different_nodes(tmp_path: Path) -> None:
    reading = Reading()
    content = "_:x <http://e/p> _:y . _:y <http://e/p> _:x ."
    first = read(tmp_path / "a.ttl", content, reading)
    second = read(tmp_path / "b.ttl", content, reading)
    assert first == [("_:b0", "http://e/p", "_:b1"), ("_:b1", "http://e/p", "_:b0")]
    assert second == [("_:b2", "http://e/p", "_:b3"), ("_:b3", "http://e/p", "_:b2")]


def test_an_english_name_is_preferred_across_files(tmp_path: Path) -> None:
    reading = Reading()
    assert read(tmp_path / "a.ttl", f'<http://e/a> {LABEL} "Anne"@fr .', reading) == []
    read(tmp_path / "b.ttl", f'<http://e/a> {LABEL} "Ann"@en-GB, "Annie"@en .', reading)
    assert reading.labels.names == {"http://e/a": "Ann"}
    assert sum(reading.left_out.values()) == 3


def test_short_names_are_the_last_part_or_two_where_that_is_shared() -> None:
    iris = ["http://e/x/a_b", "http://e/y/c", "http://e/z#c", "urn:k", "no iri", "http://e/n%C3%A9"]
    assert short_names(iris, {"urn:k": "K"}) == {
        "http://e/x/a_b": "a b",
        "http://e/y/c": "y/c",
        "http://e/z#c": "z/c",
        "urn:k": "K",
        "http://e/n%C3%A9": "né",
    }


def test_lines_are_counted_as_they_are_handed_on_even_in_pieces() -> None:
    lines = LineByLine(io.BytesIO(b"first\nsecond\n"))
    assert [lines.read(4), lines.number] == [b"firs", 1]
    assert [lines.read(4), lines.number] == [b"t\n", 1]
    assert [lines.read(99), lines.number] == [b"second\n", 2]
    assert [lines.read(99), lines.number] == [b"", 2]


def test_a_missing_parser_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'knowformer\[rdf\]'"):
        read(tmp_path / "a.ttl", "", Reading())
