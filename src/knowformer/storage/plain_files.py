"""Files that are files: what may never end, or is no file at all, is refused before it is read."""

import os
import stat
from errno import EFBIG, EINVAL
from io import FileIO
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a named pipe, which cannot be read twice",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_GENTLY = getattr(os, "O_NONBLOCK", 0)  # a pipe that takes a file's place is not waited for
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def open_plain(path: Path) -> FileIO:
    """Opens a regular file to read; symbolic links are followed.

    Raises:
        OSError: there is none, or it is a pipe, a socket, a device or a folder.
    """
    _check_kind(path, path.stat().st_mode)
    return FileIO(path, opener=_open_gently)


def _open_gently(path: str, flags: int) -> int:
    handle = os.open(path, flags | _GENTLY)
    try:
        _check_kind(Path(path), os.fstat(handle).st_mode)
    except OSError:
        os.close(handle)
        raise
    return handle


def _check_kind(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        raise OSError(EINVAL, f"it is {kind}", str(path))


def read_plain(path: Path, *, most: int | None = None) -> bytes:
    """Returns the content of a regular file.

    Args:
        path: the file.
        most: bytes that it may have; more are not read.

    Raises:
        OSError: there is none, it is no regular file, or it has more bytes.
    """
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise OSError(EFBIG, f"it has {size:,} bytes, more than the {most:,} expected")
        return file.readall()


def append_plain(path: Path, content: bytes) -> None:
    """Appends to a regular file of one's own, made if need be; links are not followed.

    Raises:
        OSError: it cannot be written, is a symbolic link, or is no regular file.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _GENTLY | _NO_LINKS
    handle = os.open(path, flags, 0o666)
    with os.fdopen(handle, "ab") as file:
        _check_kind(path, os.fstat(handle).st_mode)
        file.write(content)
