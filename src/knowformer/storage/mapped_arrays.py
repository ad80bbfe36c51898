"""Arrays in files that are mapped into memory: opened at once, read where they are looked at.

The system reads a page of such a file when it is touched, and drops it when memory is short. So an
array may be larger than memory, and several processes share one copy of it.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from knowformer.errors import BundleError
from knowformer.storage.plain_files import open_plain

Array = npt.NDArray[Any]

ANY = -1  # in a shape: any size


def write_array(path: Path, array: Array) -> None:
    """Writes an array, which ``open_array`` maps."""
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


def open_array(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
    """Maps an array of a file; writing to it changes neither the file nor another process.

    Args:
        path: the file.
        dtype: what its elements are.
        shape: what it must be; ``ANY`` for a size that is not known.

    Raises:
        BundleError: the file is missing, cut off, or holds another array.
    """
    try:
        open_plain(path).close()  # no pipe or device is waited for
        array = np.asarray(np.lib.format.open_memmap(path, mode="c"))
    except (OSError, ValueError, OverflowError) as error:  # a size that cannot be is the last
        reason = getattr(error, "strerror", None) or error
        raise BundleError(
            f"Expected a whole array in {path}, got: {reason}. Copy the folder again, or import "
            "anew."
        ) from None
    fits = len(array.shape) == len(shape) and all(
        size in (ANY, found) for size, found in zip(shape, array.shape, strict=True)
    )
    if array.dtype != np.dtype(dtype) or not fits or not array.flags.c_contiguous:
        wanted = " x ".join("any" if size == ANY else f"{size:,}" for size in shape)
        raise BundleError(
            f"Expected {wanted} numbers of type {np.dtype(dtype)} in {path}, got "
            f"{array.dtype} of shape {array.shape}. Copy the folder again, or import anew."
        )
    return array


def check_ids(path: Path, ids: Array, number: int) -> None:
    """Checks that there are only ids of so many things.

    Raises:
        BundleError: there is another one.
    """
    if ids.size and not (ids.min() >= 0 and ids.max() < number):
        raise BundleError(
            f"Expected ids from 0 to {number - 1:,} in {path}, got one outside. The file is "
            "damaged; copy the folder again, or import anew."
        )


def check_offsets(path: Path, offsets: Array, last: int) -> None:
    """Checks that offsets begin with 0, never fall, and end where they must.

    Raises:
        BundleError: they do not.
    """
    rises = len(offsets) and offsets[0] == 0 and bool((offsets[1:] >= offsets[:-1]).all())
    if not rises or offsets[-1] != last:
        raise BundleError(
            f"Expected offsets that rise from 0 to {last:,} in {path}, got others. The file is "
            "damaged; copy the folder again, or import anew."
        )


def link_files(source: Path, target: Path) -> None:
    """Puts the files of a folder into another one: the same ones on disk where that is possible.

    Such files are never written again, so that sharing them is safe.
    """
    for path in sorted(source.iterdir()):
        try:
            os.link(path, target / path.name)
        except OSError:  # another disk, or one without links
            shutil.copyfile(path, target / path.name)
