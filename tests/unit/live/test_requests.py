import sqlite3
from datetime import datetime, timedelta

import pytest

from knowformer.errors import ConfigError, ConflictError
from knowformer.live.database import MIGRATIONS
from knowformer.live.requests import check_key, digest_of, earlier_result, keep_result, utc_now


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    for statement in (each for statements in MIGRATIONS for each in statements):
        connection.execute(statement)
    return connection


def test_a_key_stands_for_one_request(connection: sqlite3.Connection) -> None:
    digest = digest_of(["change", {"head": "a", "tail": "b"}])
    assert digest == digest_of(["change", {"tail": "b", "head": "a"}])
    assert earlier_result(connection, "key", digest) is None
    keep_result(connection, "key", digest, {"version": 3}, time=utc_now())
    keep_result(connection, None, digest, {}, time=utc_now())
    assert earlier_result(connection, "key", digest) == {"version": 3}
    assert earlier_result(connection, None, digest) is None
    with pytest.raises(ConflictError, match="new idempotency key for a new request, got 'key'"):
        earlier_result(connection, "key", digest_of(["undo"]))


def test_keys_that_cannot_be_are_refused() -> None:
    check_key(None)
    check_key("0b7f-9")
    for key in ("", "x" * 201, "line\nbreak", "\ud800"):
        with pytest.raises(ConfigError, match="Expected an idempotency key of 1 to 200"):
            check_key(key)


def test_times_are_utc_and_sort_as_text() -> None:
    time = utc_now()
    assert datetime.fromisoformat(time).utcoffset() == timedelta(0)
    assert len(time) == len("2026-01-01T00:00:00.000Z")
