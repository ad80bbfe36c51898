"""Arrays in files: mapped as they were written, refused where they are others."""

from pathlib import Path

import numpy as np
import pytest

from knowformer.errors import BundleError
from knowformer.storage.mapped_arrays import (
    ANY,
    check_ids,
    check_offsets,
    link_files,
    open_array,
    write_array,
)


@pytest.mark.parametrize("shape", [(5, 3), (0, 3)])
def test_an_array_is_mapped_as_it_was_written(tmp_path: Path, shape: tuple[int, int]) -> None:
    path, array = tmp_path / "a.npy", np.arange(np.prod(shape)).reshape(shape)
    write_array(path, array)
    opened = open_array(path, np.int64, (ANY, 3))
    assert np.array_equal(opened, array)
    opened[:] = 7  # private to this process
    assert np.array_equal(open_array(path, np.int64, shape), array)


def test_another_type_or_shape_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    write_array(path, np.arange(6))
    for dtype, shape in ((np.int32, (6,)), (np.int64, (5,)), (np.int64, (2, 3))):
        with pytest.raises(BundleError, match=r"Expected .* in .*a\.npy, got int64"):
            open_array(path, dtype, shape)


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for content in (b"", b"no array", b"\x93NUMPY\x01\x00"):
        path.write_bytes(content)
        with pytest.raises(BundleError, match="Expected a whole array"):
            open_array(path, np.int64, (ANY,))


def test_files_are_shared(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "a").write_bytes(b"content")
    link_files(source, target)
    assert (target / "a").read_bytes() == b"content"


def test_ids_and_offsets_are_checked() -> None:
    path = Path("a.npy")
    check_ids(path, np.array([0, 4]), 5)
    check_ids(path, np.array([], dtype=np.int32), 0)
    check_offsets(path, np.array([0, 0, 3]), 3)
    for ids in ([-1], [5]):
        with pytest.raises(BundleError, match=r"Expected ids from 0 to 4 in a\.npy"):
            check_ids(path, np.array(ids), 5)
    for offsets in ([], [1, 2], [0, 2, 1], [0, 1, 3]):
        with pytest.raises(BundleError, match=r"Expected offsets that rise from 0 to 2 in a\.npy"):
            check_offsets(path, np.array(offsets), 2)
