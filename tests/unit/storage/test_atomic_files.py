import os
from pathlib import Path

import pytest

from knowformer.errors import StorageError
from knowformer.storage.atomic_files import atomic_folder, atomic_path, write_bytes, write_text


def test_text_is_written_as_utf_8_and_folders_are_made(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "names.txt"
    write_text(target, "Łódź\n")
    assert target.read_bytes() == "Łódź\n".encode()


def test_new_content_takes_the_place_of_the_old_and_leaves_nothing_beside_it(
    tmp_path: Path,
) -> None:
    target = tmp_path / "weights"
    write_bytes(target, b"old and longer")
    write_bytes(target, b"new")
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def interrupted_write(target: Path) -> None:
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"half of the new")
        raise KeyboardInterrupt


def test_the_old_content_stays_whole_when_writing_is_interrupted(tmp_path: Path) -> None:
    target = tmp_path / "weights"
    write_bytes(target, b"old")
    with pytest.raises(KeyboardInterrupt):
        interrupted_write(target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_no_file_appears_when_the_first_writing_is_interrupted(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted_write(tmp_path / "weights")
    assert list(tmp_path.iterdir()) == []


def failing_disk(target: Path) -> None:
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"half of the new")
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_a_storage_error_that_names_the_file_and_keeps_the_old_one(
    tmp_path: Path,
) -> None:
    target = tmp_path / "weights"
    write_bytes(target, b"old")
    with pytest.raises(StorageError, match="No space left on device") as caught:
        failing_disk(target)
    assert str(target) in str(caught.value)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"file/run/config\.toml"):
        write_text(tmp_path / "file" / "run" / "config.toml", "")
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_target_that_is_a_folder_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml" / "inner").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"config\.toml"):
        write_text(tmp_path / "config.toml", "")
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_an_unwritable_folder_is_a_storage_error(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):  # root may write anywhere, except into the kernel's own files
        folder = Path("/proc/sys")
        if not folder.is_dir():
            pytest.skip("no folder here that root may not write to")
    with pytest.raises(StorageError, match=str(folder)):
        write_text(folder / "config.toml", "")


def test_a_folder_appears_whole_and_replaces_an_old_one_only_when_asked(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder"
    with atomic_folder(target) as place:
        (place / "one.txt").write_text("1")
        assert not target.exists()
    assert (target / "one.txt").read_text() == "1"
    with pytest.raises(StorageError, match="already"), atomic_folder(target):
        pass
    with atomic_folder(target, replace=True) as place:
        (place / "two.txt").write_text("2")
    assert [path.name for path in target.iterdir()] == ["two.txt"]
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with atomic_folder(target) as place:
        (place / "one.txt").write_text("1")

    def fail() -> None:
        with atomic_folder(target, replace=True) as place:
            (place / "two.txt").write_text("2")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    assert [path.name for path in target.iterdir()] == ["one.txt"]
    assert list(tmp_path.iterdir()) == [target]
