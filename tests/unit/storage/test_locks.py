from pathlib import Path

import pytest

from knowformer.errors import BundleError, StorageError
from knowformer.storage.locks import sole_process


def test_one_at_a_time_and_nothing_is_left(tmp_path: Path) -> None:
    path, refusal = tmp_path / ".lock", BundleError("Expected to be alone.")
    with (
        sole_process(path, refusal),
        pytest.raises(BundleError, match="alone"),
        sole_process(path, refusal),
    ):
        raise AssertionError("both are inside")
    with sole_process(path, refusal):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / ".lock").symlink_to("precious")
    with (
        pytest.raises(StorageError, match="symbolic link"),
        sole_process(tmp_path / ".lock", BundleError("")),
    ):
        raise AssertionError("it was followed")
    assert (tmp_path / "precious").read_text() == "mine"
