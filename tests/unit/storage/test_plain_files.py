import os
import socket
from pathlib import Path

import pytest

from knowformer.storage.plain_files import append_plain, open_plain, read_plain


def test_a_file_is_read_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "link") == b"content"
    with open_plain(tmp_path / "file") as file:
        assert file.read(3) == b"con"
    with pytest.raises(OSError, match="it has 7 bytes, more than the 6"):
        read_plain(tmp_path / "file", most=6)


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", tmp_path / "socket", tmp_path, Path("/dev/zero")):
            with pytest.raises(OSError, match="it is a"):
                read_plain(path)


def test_what_is_appended_to_is_a_file_and_no_link(tmp_path: Path) -> None:
    append_plain(tmp_path / "file", b"one")
    append_plain(tmp_path / "file", b" two")
    assert (tmp_path / "file").read_bytes() == b"one two"
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=name):
            append_plain(tmp_path / name, b" three")
    assert (tmp_path / "file").read_bytes() == b"one two"
