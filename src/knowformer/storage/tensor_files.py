"""Named tensors on disk: safetensors in and out, written atomically, broken files named."""

from collections.abc import Generator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from knowformer.errors import BundleError
from knowformer.storage.atomic_files import write_bytes
from knowformer.storage.plain_files import open_plain

_DTYPES = {
    "F32": torch.float32,
    "F64": torch.float64,
    "I32": torch.int32,
    "I64": torch.int64,
}


def write_tensors(
    path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Writes tensors and a few strings to one file."""
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(contiguous, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads what ``write_tensors`` wrote.

    Raises:
        BundleError: the file is missing or damaged.
    """
    with _opened(path) as file:
        names: list[str] = list(file.keys())
        return {name: file.get_tensor(name) for name in names}, file.metadata() or {}


def read_layout(path: Path) -> dict[str, tuple[torch.dtype | None, tuple[int, ...]]]:
    """Reads type and shape of every tensor, and no tensor; the type is None where it is unusual.

    Raises:
        BundleError: the file is missing or damaged.
    """
    with _opened(path) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        return {
            name: (_DTYPES.get(part.get_dtype()), tuple(part.get_shape()))
            for name, part in slices.items()
        }


def read_metadata(path: Path) -> dict[str, str]:
    """Reads the strings that ``write_tensors`` wrote, and no tensor.

    Raises:
        BundleError: the file is missing or damaged.
    """
    with _opened(path) as file:
        return file.metadata() or {}


@contextmanager
def _opened(path: Path) -> Generator[Any]:
    if not path.is_file():
        raise BundleError(
            f"Expected {path.name} in {path.parent}, found none. The folder is not whole; copy it "
            "again or train anew."
        )
    try:
        with open_plain(path) as plain, safe_open(_readable(path, plain), framework="pt") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise BundleError(
            f"Expected whole safetensors in {path}, got: {error}. The file is damaged; copy it "
            "again or train anew."
        ) from error


def _readable(path: Path, opened: FileIO) -> str:
    """Returns a name for safetensors, which takes none that is not UTF-8."""
    name = str(path)
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return f"/dev/fd/{opened.fileno()}"
    return name
