"""Locks: one process at a time; one that is killed holds nothing."""

import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from knowformer.errors import StorageError, UserError

_logger = logging.getLogger(__name__)


@contextmanager
def sole_process(path: Path, refusal: UserError, *, wait: float = 0.0) -> Generator[None]:
    """Keeps other processes out of what is inside, by a lock on a file that is made for it.

    Args:
        path: the file; its folder must be there.
        refusal: raised if another process is inside.
        wait: seconds that it is given to leave.

    Raises:
        StorageError: there is a symbolic link in the file's place.
    """
    lock = FileLock(path, timeout=wait)
    try:
        lock.acquire()
    except Timeout:
        raise refusal from None
    except (OSError, NotImplementedError) as error:  # a disk without locks
        if path.is_symlink():
            raise StorageError(
                f"Expected no symbolic link at {path}, found one. Remove it."
            ) from None
        _logger.debug("No lock at %s: %s", path, error)
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):
                path.unlink()
        lock.release()
