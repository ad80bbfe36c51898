"""Files as streams of bytes, unzipped on the way, with how far the reading has come."""

import gzip
import io
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from knowformer.errors import DataError

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """An open file: its content, and where the reading stands in the file as it lies on disk."""

    content: BinaryIO
    _file: io.FileIO

    def bytes_read(self) -> int:
        """Returns how many bytes of the file have been taken in."""
        return self._file.tell()


@contextmanager
def open_source(path: Path) -> Generator[Source]:
    """Opens a file, zipped by gzip or not, whatever its name says.

    Raises:
        DataError: there is no such file, it cannot be read, or its end is missing.
    """
    try:
        with path.open("rb", buffering=0) as file:
            is_zipped = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            file.seek(0)
            buffered = io.BufferedReader(file, 1 << 20)
            content = gzip.GzipFile(fileobj=buffered) if is_zipped else buffered
            yield Source(cast(BinaryIO, content), file)
    except FileNotFoundError:
        raise DataError(f"Expected a file at {path}, found none.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"Expected a whole gzip file at {path}, got: {error}.") from error
    except OSError as error:
        raise DataError(f"Expected a readable file at {path}, got '{error.strerror}'.") from error


def size_of(path: Path) -> int:
    """Returns a file's size in bytes.

    Raises:
        DataError: there is no such file, or it is empty.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"Expected a file at {path}, got '{error.strerror}'.") from error
    if path.is_dir():
        raise DataError(f"Expected a file at {path}, found a folder. Name the files in it.")
    if not size:
        raise DataError(f"Expected facts in {path}, got an empty file.")
    return size
