from pathlib import Path

import pytest

from knowformer.choices import Format
from knowformer.data.readers.formats import ENDINGS, READERS, format_of
from knowformer.errors import DataError


def test_every_format_has_a_reader_and_endings_of_its_own() -> None:
    assert set(READERS) == set(Format)
    endings = [ending for reader in READERS.values() for ending in reader.endings]
    assert len(endings) == len(set(endings)) == len(ENDINGS)
    assert all(reader.endings for reader in READERS.values())


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("f.TSV", Format.TSV),
        ("f.txt", Format.CSV),
        ("f.jsonl.gz", Format.JSONL),
        ("a.b.nt", Format.NTRIPLES),
        ("f.owl", Format.RDFXML),
    ],
)
def test_a_name_tells_the_format(name: str, format_: Format) -> None:
    assert format_of(Path(name)) == format_
    assert format_of(Path(name), Format.TRIG) == Format.TRIG


@pytest.mark.parametrize(
    ("name", "advice"),
    [("f", "`format`"), ("f.xlsx", "as CSV"), ("f.json", "JSON Lines"), ("f.tsv.bz2", "gzip")],
)
def test_a_name_that_tells_nothing_is_answered_with_advice(name: str, advice: str) -> None:
    with pytest.raises(DataError, match=f"got {name}. .*{advice}"):
        format_of(Path(name))
