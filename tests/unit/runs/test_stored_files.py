import os
from pathlib import Path

import pytest

from knowformer.errors import BundleError
from knowformer.runs import stored_files
from knowformer.runs.stored_files import read_text


def test_what_is_no_readable_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"\xff")
    (tmp_path / "large").write_text("0123456789")
    monkeypatch.setattr(stored_files, "MOST_BYTES", 9)
    for name, part in [
        ("missing", "found none"),
        ("pipe", "a named pipe"),
        ("bytes", "can't decode"),
        ("large", "it has 10 bytes"),
    ]:
        with pytest.raises(BundleError, match=part):
            read_text(tmp_path / name)
