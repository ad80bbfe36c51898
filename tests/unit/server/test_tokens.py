"""Tokens."""

import os
from pathlib import Path

import pytest

from knowformer.errors import ConfigError
from knowformer.server.tokens import Caller, read_tokens

READ, WRITE = "r" * 16, "w" * 40


def test_a_file_gives_roles_and_names(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# who may ask\n\nread {READ}\nwrite\t{WRITE} Ann Lee\n", "utf-8")
    tokens = read_tokens(path)
    assert tokens.find(READ) == Caller("read")
    assert tokens.find(WRITE) == Caller("write", "Ann Lee")
    assert tokens.find(WRITE[:-1]) is None
    assert tokens.find("") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"admin {READ}", "tokens:1"),
        ("read", "tokens:1"),
        (f"read {READ}\nwrite short-secret", "at least 16"),
        ("# nobody\n", "found none"),
        ("", "found none"),
    ],
)
def test_another_file_is_refused_without_repeating_a_secret(
    tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "tokens"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigError, match=said) as refusal:
        read_tokens(path)
    assert "short-secret" not in str(refusal.value)
    assert READ not in str(refusal.value)


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_tokens(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_tokens(tmp_path / "bytes")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokens")
    with pytest.raises(ConfigError, match="a named pipe"):
        read_tokens(tmp_path / "tokens")
