"""Files as streams of bytes: unzipped while they are read, refused when they are no text."""

import codecs
import gzip
import io
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EINVAL
from pathlib import Path
from typing import BinaryIO, cast

from knowformer.errors import DataError
from knowformer.storage.plain_files import open_plain

_GZIP_MAGIC = b"\x1f\x8b"
_PEEK = 4096

# What other files begin with, what they are, and what to do with them.
_OTHERS = {
    b"\xff\xfe": ("UTF-16", "Save the file as UTF-8."),
    b"\xfe\xff": ("UTF-16", "Save the file as UTF-8."),
    b"PAR1": ("a Parquet file", "Import it with `format='parquet'`."),
    b"PK\x03\x04": ("a zip file, such as spreadsheets are", "Unpack it, or save it as CSV."),
    b"BZh": ("a file packed by bzip2", "Unpack it, or pack it with gzip."),
    b"\xfd7zXZ": ("a file packed by xz", "Unpack it, or pack it with gzip."),
    b"\x28\xb5\x2f\xfd": ("a file packed by zstd", "Unpack it, or pack it with gzip."),
}


@dataclass(frozen=True)
class Source:
    """An open file: its unzipped content, and how far the file on disk has been read."""

    content: BinaryIO
    _file: io.FileIO

    def bytes_read(self) -> int:
        """Returns how many bytes of the file on disk have been read."""
        return self._file.tell()


@contextmanager
def open_source(path: Path) -> Generator[Source]:
    """Opens a file, zipped by gzip or not, whatever its name says.

    Raises:
        DataError: there is no such file, it cannot be read, its end is missing, or it is no text.
    """
    try:
        with open_plain(path) as file:
            is_zipped = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            file.seek(0)
            buffered = io.BufferedReader(file, 1 << 20)
            content = gzip.GzipFile(fileobj=buffered) if is_zipped else buffered
            _check_text(path, content.peek(_PEEK)[:_PEEK])
            yield Source(cast(BinaryIO, content), file)
    except FileNotFoundError:
        raise DataError(f"Expected a file at {path}, found none.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"Expected a whole gzip file at {path}, got: {error}.") from error
    except OSError as error:
        raise DataError(f"Expected a readable file at {path}, got '{error.strerror}'.") from error


def _check_text(path: Path, beginning: bytes) -> None:
    """Names what is no UTF-8 text at all; a stray byte is left to be found with its line."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning)  # may end inside a character
    except UnicodeDecodeError:
        pass
    else:
        return
    for magic, (what, advice) in _OTHERS.items():
        if beginning.startswith(magic):
            raise DataError(f"Expected UTF-8 text in {path}, got {what}. {advice}")
    if b"\0" in beginning:
        raise DataError(
            f"Expected UTF-8 text in {path}, got a binary file. Say what it is with `format`, "
            "or save it as text."
        )


def size_of(path: Path) -> int:
    """Returns a file's size in bytes.

    Raises:
        DataError: there is no such file, or it is empty.
    """
    try:
        size = path.stat().st_size
        if not path.is_file() and not path.is_dir():
            raise OSError(EINVAL, "it is no regular file")
    except FileNotFoundError:
        raise DataError(f"Expected a file at {path}, found none.") from None
    except OSError as error:
        raise DataError(f"Expected a file at {path}, got '{error.strerror}'.") from error
    if path.is_dir():
        raise DataError(f"Expected a file at {path}, found a folder. Name the files in it.")
    if not size:
        raise DataError(f"Expected facts in {path}, got an empty file.")
    return size
