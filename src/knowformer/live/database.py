"""Database: the SQLite file of live facts and decisions; one process writes, many threads read.

What a transaction has written survives ``kill -9`` and loss of power once it is over (write-ahead
log, flushed with every transaction); what it has not is not half there. ``user_version`` of the
file counts the migrations that made it.
"""

import logging
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from filelock import FileLock, Timeout

from knowformer.errors import BundleError, ConflictError, StorageError, printable

_logger = logging.getLogger(__name__)

APPLICATION_ID = 0x6B6E6F77  # 'know': says whose file it is
WAIT_SECONDS = 10.0  # for readers of other processes
ROWS_AT_ONCE = 1000

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE store (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        # AUTOINCREMENT: numbers only rise, so that one of them names a snapshot for good.
        """CREATE TABLE changes (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            action TEXT NOT NULL CHECK (action IN ('add', 'remove')),
            head TEXT NOT NULL,
            relation TEXT NOT NULL,
            tail TEXT NOT NULL,
            author TEXT,
            time TEXT NOT NULL,
            why TEXT,
            source TEXT,
            undoes INTEGER UNIQUE REFERENCES changes (id)
        )""",
        "CREATE INDEX changes_of_a_fact ON changes (head, relation, tail)",
        """CREATE TABLE decisions (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            verdict TEXT NOT NULL CHECK (verdict IN ('accept', 'reject', 'unsure')),
            head TEXT NOT NULL,
            relation TEXT NOT NULL,
            tail TEXT NOT NULL,
            author TEXT,
            time TEXT NOT NULL,
            note TEXT,
            rank INTEGER,
            probability REAL,
            snapshot INTEGER NOT NULL,
            fact_id INTEGER REFERENCES changes (id),
            undone TEXT
        )""",
        # A request that came with a key: what it asked, as a checksum, and what it did.
        """CREATE TABLE requests (
            key TEXT PRIMARY KEY,
            time TEXT NOT NULL,
            digest TEXT NOT NULL,
            result TEXT NOT NULL
        ) WITHOUT ROWID""",
    ),
)
"""Statements that make each version of the file from the one before; only ever added to."""

# A run folder may be anybody's, and SQLite keeps bytes in a column of text, too.
NO_TEXT = """SELECT count(*) FROM (
    SELECT head, relation, tail, time FROM changes UNION ALL
    SELECT head, relation, tail, time FROM decisions
) WHERE typeof(head) || typeof(relation) || typeof(tail) || typeof(time) <> 'texttexttexttext'"""


class Database:
    """An open file; ``transaction`` writes, ``rows`` reads what is committed."""

    def __init__(self, path: Path) -> None:
        """Opens a file, or makes one, and keeps other processes from writing to it.

        Raises:
            BundleError: another process has it open, or it is no store that can be read.
            StorageError: it cannot be written.
        """
        self.path = path
        self._lock = Lock()
        _check_file(path)
        self._file_lock = _sole_writer(path)
        try:
            with _said(path), ExitStack() as undone:
                self._connection = undone.enter_context(closing(_connect(path)))
                _migrate(self._connection, path)
                undone.pop_all()
        except BaseException:
            self._file_lock.release()
            raise

    def close(self) -> None:
        """Closes the file once a transaction under way is over; may be called again."""
        with self._lock, _said(self.path):
            self._connection.close()
            self._file_lock.release()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Yields the one connection that writes; whole and on disk afterwards, or nothing at all.

        Raises:
            StorageError: the disk is full or failing; nothing was written.
        """
        with self._lock, _said(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back by itself.
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
        """Yields rows of one moment, whatever is written meanwhile, holding few of them."""
        with _said(self.path), closing(_connect_to_read(self.path)) as connection:
            found = connection.execute(query, values)
            while some := found.fetchmany(ROWS_AT_ONCE):
                yield from some


def read_rows(path: Path, query: str, values: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
    """Yields rows of a store that another process may be writing to.

    Raises:
        BundleError: there is none, or none that can be read.
    """
    if not path.is_file():
        raise BundleError(f"Expected a store of live facts at {path}, found none.")
    with _said(path), closing(_connect_to_read(path)) as connection:
        _check(connection, path)
        yield from connection.execute(query, values)


def find_row(connection: sqlite3.Connection, query: str, number: int) -> sqlite3.Row | None:
    """Returns the row with a number; None if there is none, or none could have that number."""
    return connection.execute(query, (number,)).fetchone() if 0 < number < 2**63 else None


def _sole_writer(path: Path) -> FileLock:
    """Takes the lock beside a store; a killed process does not hold it.

    The lock is a file of its own and stays: were it removed, two processes might each hold one.
    """
    lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise BundleError(
            f"Expected {path} to be free, found another process that has it open. Stop that one, "
            "or choose another `store`."
        ) from None
    except NotImplementedError as error:  # a disk without locks
        _logger.warning("No lock on %s: %s. Open it from one process alone.", path, error)
    except OSError as error:
        raise StorageError(
            f"Expected to write {path}, got '{error.strerror or error}'. Choose another `store`."
        ) from error
    return lock


def _check_file(path: Path) -> None:
    """Refuses what is there and is no file: a link would lead writes elsewhere.

    Raises:
        BundleError: it is a symbolic link, a folder, a pipe or a device.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise BundleError(
            f"Expected a file at {path}, found a link or something else. Give the file itself as "
            "`store`."
        )


def _connect(path: Path) -> sqlite3.Connection:
    # The lock of `Database` lets one thread at a time use it.
    connection = sqlite3.connect(
        path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    return connection


def _connect_to_read(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.row_factory = sqlite3.Row
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> int:
    """Returns the file's version.

    Raises:
        BundleError: it is another program's file, or of a newer version.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (version or tables):
        raise BundleError(
            f"Expected a store of live facts at {path}, got a database of another program. Choose "
            "another `store`."
        )
    if version > len(MIGRATIONS):
        raise BundleError(
            f"Expected a store of version {len(MIGRATIONS)} or older at {path}, got version "
            f"{version}. Update knowformer."
        )
    if version and _schema(connection) != _schema_of(version):
        raise BundleError(
            f"Expected the tables of a store of live facts at {path}, got others. Choose another "
            "`store`."
        )
    return version


def _check_content(connection: sqlite3.Connection, path: Path) -> None:
    """Checks what tables hold, once, when a store is opened.

    Raises:
        BundleError: pages are damaged, or rows are not as the tables want them.
    """
    (fault,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    (odd,) = connection.execute(NO_TEXT).fetchone()
    if fault != "ok" or odd:
        raise BundleError(
            f"Expected a store of live facts at {path}, got "
            f"{'rows that hold no text' if fault == 'ok' else printable(fault)}. Restore it "
            "from a copy, or choose another `store`."
        )


def _schema(connection: sqlite3.Connection) -> set[tuple[str, str | None]]:
    """Returns the name of each table, index, view and trigger, and the statement that made it."""
    found = connection.execute("SELECT name, sql FROM sqlite_master")
    return {(row[0], row[1]) for row in found}


@cache
def _schema_of(version: int) -> set[tuple[str, str | None]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                connection.execute(statement)
        return _schema(connection)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Brings a file to the newest version, a migration at a time, each whole or not at all."""
    version = _check(connection, path)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StorageError(
            f"Expected a disk that a write-ahead log can be kept on for {path}, got one without "
            "shared memory, such as a network drive. Choose another `store`."
        )
    for pragma in ("synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    _check_content(connection, path)


@contextmanager
def _said(path: Path) -> Generator[None]:
    """Turns what SQLite raises into a sentence."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise ConflictError(f"Expected a change that {path} allows, got: {error}.") from error
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"Expected to read and write {path}, got '{error}'. Free some space or choose another "
            "`store`."
        ) from error
    except sqlite3.DatabaseError as error:
        raise BundleError(
            f"Expected a store of live facts at {path}, got: {error}. Restore it from a copy, or "
            "choose another `store`."
        ) from error
