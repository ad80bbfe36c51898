"""Files and folders appear whole or not at all: write beside, flush to disk, then rename."""

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from errno import EEXIST
from pathlib import Path

from knowformer.errors import StorageError

LONGEST = 60  # characters of a name beside which a file is written: names have a limit
_unfinished: dict[Path, None] = {}  # files and folders that are being written


@contextmanager
def atomic_path(target: Path) -> Generator[Path]:
    """Yields a path beside ``target`` to write to; on success it takes the target's place.

    Whatever happens inside, ``target`` holds either its old content or the whole new one, and no
    temporary file stays behind (one does after ``kill -9``; its name starts with a dot).

    Raises:
        StorageError: the folder cannot be made or written, or the disk is full.
    """
    temporary = target.with_name(f".{target.name[:LONGEST]}.{secrets.token_hex(4)}.partial")
    _unfinished[temporary] = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise StorageError(
            f"Expected to write {target}, got '{error.strerror or error}'. "
            "Free some space or choose another folder."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
        _unfinished.pop(temporary, None)


@contextmanager
def atomic_folder(target: Path, *, replace: bool = False) -> Generator[Path]:
    """Yields an empty folder beside ``target`` to fill; on success it takes the target's place.

    Args:
        target: the folder to appear, whole or not at all.
        replace: take the place of a folder that is there already; without it that is an error.

    Raises:
        StorageError: the target is there already, or cannot be written.
    """
    mark, name = secrets.token_hex(4), target.name[:LONGEST]
    temporary = target.with_name(f".{name}.{mark}.partial")
    aside = target.with_name(f".{name}.{mark}.old.partial")
    _unfinished[temporary] = None
    try:
        if not replace and os.path.lexists(target):
            raise FileExistsError(EEXIST, "there is something of that name already")
        temporary.mkdir(parents=True)
        yield temporary
        for path in [*temporary.rglob("*"), temporary]:
            _flush_to_disk(path)
        if os.path.lexists(target):
            target.rename(aside)  # two steps: no system call replaces a folder that is not empty
        temporary.rename(target)
    except OSError as error:
        if aside.exists() and not os.path.lexists(target):
            aside.rename(target)
        raise StorageError(
            f"Expected to write the folder {target}, got '{error.strerror or error}'. "
            "Choose another folder or free some space."
        ) from error
    finally:
        for left in (temporary, aside):
            shutil.rmtree(left, ignore_errors=True)
        _unfinished.pop(temporary, None)


def _flush_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_unfinished() -> None:
    """Removes what is being written, for a process that is about to end at once."""
    for path in list(_unfinished):
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.unlink()


def remove_partial_files(folder: Path) -> None:
    """Removes temporary files that ``kill -9`` left behind; no one else may write to the folder."""
    for left in folder.glob(".*.partial"):
        with suppress(OSError):
            left.unlink()


def write_bytes(target: Path, content: bytes) -> None:
    """Writes ``content`` to ``target`` atomically."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)


def write_text(target: Path, content: str) -> None:
    """Writes ``content`` to ``target`` atomically, as UTF-8; lone surrogates as JSON has them."""
    write_bytes(target, content.encode("utf-8", errors="backslashreplace"))
