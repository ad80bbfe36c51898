"""Stores that are free, in use, of another version, or no stores at all."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from knowformer.errors import BundleError, StorageError
from knowformer.live.database import MIGRATIONS, Database, read_rows

COUNT = "SELECT count(*) FROM store"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "live.sqlite"


def insert(database: Database, name: str) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO store (name, value) VALUES (?, ?)", (name, "x"))


def test_a_transaction_is_whole_or_nothing_and_seen_by_readers_afterwards(path: Path) -> None:
    with closing(Database(path)) as database:
        insert(database, "one")
        with suppress(RuntimeError), database.transaction() as connection:
            connection.execute("INSERT INTO store (name, value) VALUES ('two', 'x')")
            assert next(database.rows(COUNT))[0] == 1
            raise RuntimeError
        insert(database, "three")
        assert [row["name"] for row in database.rows("SELECT name FROM store")] == ["one", "three"]
        assert [row[0] for row in read_rows(path, COUNT)] == [2]
    with closing(Database(path)) as database:
        assert next(database.rows(COUNT))[0] == 2


def test_durability_is_asked_for(path: Path) -> None:
    with closing(Database(path)) as database, database.transaction() as connection:
        settings = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "user_version")
        ]
    assert settings == ["wal", 2, 1, len(MIGRATIONS)]


def test_the_second_to_open_a_store_is_refused_until_the_first_has_closed(path: Path) -> None:
    first = Database(path)
    with pytest.raises(BundleError, match="another process that has it open"):
        Database(path)
    insert(first, "one")
    first.close()
    Database(path).close()


def test_files_that_are_no_store_or_a_newer_one_are_refused_and_left_as_they_are(
    path: Path,
) -> None:
    Database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer = path.read_bytes()
    message = rf"version {len(MIGRATIONS)} or older .* got version {len(MIGRATIONS) + 1}\. Update"
    for _ in range(2):  # the refused opener holds no lock
        with pytest.raises(BundleError, match=message):
            Database(path)
    with pytest.raises(BundleError, match=message):
        list(read_rows(path, COUNT))
    assert path.read_bytes() == newer
    path.write_bytes(b"facts\n" * 500)
    with pytest.raises(BundleError, match=r"live facts at .*, got: file is not a database"):
        Database(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE books (title TEXT)")
    with pytest.raises(BundleError, match="a database of another program"):
        Database(path)
    with pytest.raises(BundleError, match="found none"):
        list(read_rows(path.with_name("other"), COUNT))


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"Expected to write .*/file/live\.sqlite, got"):
        Database(tmp_path / "file" / "live.sqlite")


def test_a_link_or_a_pipe_in_the_place_of_a_store_is_left_alone(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    outside = tmp_path / "outside"
    outside.touch()
    path.symlink_to(outside)
    with pytest.raises(BundleError, match="found a link"):
        Database(path)
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BundleError, match="found a link"):
        Database(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BundleError, match="something else"):
        Database(path)
    assert outside.read_bytes() == b""
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TRIGGER t AFTER INSERT ON changes BEGIN DELETE FROM store; END"],
        ["DROP TABLE decisions", "CREATE VIEW decisions AS SELECT * FROM changes"],
        ["DROP TABLE requests"],
    ],
)
def test_other_tables_than_our_own_are_refused(path: Path, statements: list[str]) -> None:
    Database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    with pytest.raises(BundleError, match="the tables of a store"):
        Database(path)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [("head", b"\xff", "rows that hold no text"), ("action", "burn", "CHECK constraint failed")],
)
def test_rows_that_are_no_changes_are_refused(
    path: Path, column: str, value: object, said: str
) -> None:
    Database(path).close()
    row = {"action": "add", "head": "a", "relation": "r", "tail": "b", "time": "now"}
    row = {**row, column: value}
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT INTO changes ({', '.join(row)}) VALUES ({marks})", list(row.values())
        )
    with pytest.raises(BundleError, match=said):
        Database(path)
