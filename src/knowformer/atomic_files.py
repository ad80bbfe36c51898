"""Files appear whole or not at all: write beside the target, flush to disk, then rename."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from knowformer.errors import StorageError


@contextmanager
def atomic_path(target: Path) -> Generator[Path]:
    """Yields a path beside ``target`` to write to; on success it takes the target's place.

    Whatever happens inside, ``target`` holds either its old content or the whole new one, and no
    temporary file stays behind (one does after ``kill -9``; its name starts with a dot).

    Raises:
        StorageError: the folder cannot be made or written, or the disk is full.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
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


def remove_partial_files(folder: Path) -> None:
    """Removes what ``kill -9`` left behind; nobody else may be writing to the folder."""
    for left in folder.glob(".*.partial"):
        with suppress(OSError):
            left.unlink()


def write_bytes(target: Path, content: bytes) -> None:
    """Writes ``content`` to ``target`` atomically."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)


def write_text(target: Path, content: str) -> None:
    """Writes ``content`` to ``target`` atomically, as UTF-8."""
    write_bytes(target, content.encode("utf-8"))
