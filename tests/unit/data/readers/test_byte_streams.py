import gzip
from pathlib import Path

import pytest

from knowformer.data.readers.byte_streams import open_source, size_of
from knowformer.errors import DataError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "facts.csv"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_unzipped_by_its_content_whatever_its_name(file: Path, pack: type[bytes]) -> None:
    file.write_bytes(pack(b"a,b,c\n" * 9))
    with open_source(file) as source:
        assert source.bytes_read() > 0  # looked at, to see what it is
        assert source.content.read() == b"a,b,c\n" * 9
        assert source.bytes_read() == size_of(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("ann,knows,bob\n".encode("utf-16"), "got UTF-16. Save"),
        (b"PK\x03\x04\xff\xfe", "spreadsheets"),
        (b"BZh91AY&SY\xff", "bzip2"),
        (b"PAR1\x15\x04\x15\xff", "`format='parquet'`"),
        (bytes(range(256)), "a binary file"),
        (gzip.compress(bytes(range(256)), mtime=0), "a binary file"),
    ],
)
def test_a_file_that_is_no_text_is_named(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError, match=f"UTF-8 text in .*{message}"), open_source(file):
        pass


def test_text_that_begins_like_another_format_is_text(file: Path) -> None:
    file.write_text("PAR1,binds,BZhF\n" + "ä" * 5000)
    with open_source(file) as source:
        assert source.content.readline() == b"PAR1,binds,BZhF\n"


def test_a_truncated_gzip_file_is_refused(file: Path) -> None:
    file.write_bytes(gzip.compress(b"a,b,c\n" * 10_000)[:-20])
    with pytest.raises(DataError, match="whole gzip file"), open_source(file) as source:
        source.content.read()


def test_what_has_no_size_is_refused(tmp_path: Path, file: Path) -> None:
    with pytest.raises(DataError, match=r"at .*facts\.csv, found none"):
        size_of(file)
    file.write_bytes(b"")
    with pytest.raises(DataError, match="an empty file"):
        size_of(file)
    with pytest.raises(DataError, match="found a folder"):
        size_of(tmp_path)
