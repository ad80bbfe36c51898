"""Tokens: who may ask, and who may write; read from a file, compared in constant time."""

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from knowformer.errors import ConfigError
from knowformer.storage.plain_files import read_plain

Role = Literal["read", "write"]
SHORTEST = 16
MOST_BYTES = 2**20


@dataclass(frozen=True)
class Caller:
    """Whoever sent a request."""

    role: Role
    name: str | None = None
    """As the token file has it: the author of what is written with this token."""

    @property
    def roles(self) -> list[Role]:
        """All that the caller may do: who may write may read."""
        return ["read", "write"] if self.role == "write" else ["read"]


class Tokens:
    """Callers by their secret tokens; only checksums are kept."""

    def __init__(self, callers: dict[str, Caller]) -> None:
        self._callers = [(_checksum(token), caller) for token, caller in callers.items()]

    def find(self, token: str) -> Caller | None:
        """Returns whose token this is; how long that takes says nothing about it."""
        found, given = None, _checksum(token)
        for checksum, caller in self._callers:
            if hmac.compare_digest(checksum, given):
                found = caller
        return found


def read_tokens(path: Path) -> Tokens:
    """Reads a token file: a line is a role, a token and, if wanted, the name of its owner.

    Raises:
        ConfigError: the file cannot be read, or a line is something else. Tokens are not repeated.
    """
    try:
        lines = read_plain(path, most=MOST_BYTES).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "other bytes than UTF-8"
        raise ConfigError(f"Expected a token file at {path}, got '{reason}'.") from None
    callers: dict[str, Caller] = {}
    for number, line in enumerate(lines, start=1):
        role, *rest = line.split(maxsplit=2) or ["#"]
        if role.startswith("#"):
            continue
        if role not in get_args(Role) or not rest or len(rest[0]) < SHORTEST:
            raise ConfigError(
                f"Expected 'read TOKEN' or 'write TOKEN', with a token of at least {SHORTEST} "
                f"characters, at {path}:{number}, got something else."
            )
        callers[rest[0]] = Caller("write" if role == "write" else "read", *rest[1:])
    if not callers:
        raise ConfigError(f"Expected a line such as 'write TOKEN' in {path}, found none.")
    return Tokens(callers)


def _checksum(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", errors="surrogateescape")).digest()
