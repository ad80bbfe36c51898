import os
from pathlib import Path

import pytest
import torch

from knowformer.errors import BundleError
from knowformer.storage.tensor_files import read_tensors, write_tensors


def test_tensors_and_strings_come_back_as_they_were(tmp_path: Path) -> None:
    tensors = {
        "weights": torch.randn(3, 4).T,  # not contiguous
        "facts": torch.arange(6, dtype=torch.int32).view(2, 3),
        "step": torch.tensor(7.0),
        "none": torch.empty(0, 3, dtype=torch.long),
    }
    write_tensors(tmp_path / "file.safetensors", tensors, {"counters": '{"step": 7}'})
    loaded, metadata = read_tensors(tmp_path / "file.safetensors")
    assert metadata == {"counters": '{"step": 7}'}
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"Expected model\.safetensors in .*found none"):
        read_tensors(tmp_path / "model.safetensors")


@pytest.mark.parametrize("keep", [0, 5, 100])
def test_a_damaged_file_is_named(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "model.safetensors"
    write_tensors(path, {"weights": torch.randn(40)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BundleError, match=r"model\.safetensors.*damaged"):
        read_tensors(path)


def test_a_folder_may_have_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    write_tensors(folder / "file.safetensors", {"weights": torch.arange(3.0)})
    assert torch.equal(read_tensors(folder / "file.safetensors")[0]["weights"], torch.arange(3.0))
