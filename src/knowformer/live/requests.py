"""Requests that came with a key: the same one again does nothing and gets the same result."""

import hashlib
import json
import sqlite3
from datetime import UTC, datetime
from typing import Any

from knowformer.errors import ConfigError, ConflictError

MAX_KEY = 200


def utc_now() -> str:
    """Returns the time as it is stored: UTC, ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def digest_of(request: Any) -> str:
    """Returns a checksum of all that a request asks for."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def check_key(key: str | None) -> None:
    """Refuses a key that is empty, too long or no text.

    Raises:
        ConfigError: it is.
    """
    if key is not None and not (0 < len(key) <= MAX_KEY and key.isprintable()):
        raise ConfigError(
            f"Expected an idempotency key of 1 to {MAX_KEY} printable characters, got "
            f"{len(key):,} characters: {key[:40]!r}."
        )


def earlier_result(connection: sqlite3.Connection, key: str | None, digest: str) -> Any:
    """Returns the result of an earlier request with this key; None if there was none.

    Raises:
        ConflictError: the earlier request asked for something else.
    """
    if key is None:
        return None
    found = connection.execute(
        "SELECT digest, result, time FROM requests WHERE key = ?", (key,)
    ).fetchone()
    if found is None:
        return None
    if found["digest"] != digest:
        raise ConflictError(
            f"Expected a new idempotency key for a new request, got {key!r}, with which another "
            f"one was made at {found['time']}. Make a key for every request."
        )
    return json.loads(found["result"])


def keep_result(
    connection: sqlite3.Connection, key: str | None, digest: str, result: Any, *, time: str
) -> None:
    """Stores the result of a request, if it has a key, in the transaction that made it."""
    if key is not None:
        connection.execute(
            "INSERT INTO requests (key, time, digest, result) VALUES (?, ?, ?, ?)",
            (key, time, digest, json.dumps(result)),
        )
