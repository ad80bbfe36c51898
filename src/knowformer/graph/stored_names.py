"""Strings in arrays, which may be mapped from files: no Python object for each of millions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from knowformer.errors import BundleError
from knowformer.seeding import name_keys

Ids = npt.NDArray[np.int64]

DECODED_AT_ONCE = 65_536


def packed_strings(strings: Iterable[str]) -> tuple[npt.NDArray[np.uint8], Ids]:
    """Returns the bytes of strings end to end, and where each begins and the last ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


class StoredStrings(Sequence[str]):
    """A list of strings, each made when it is asked for."""

    def __init__(self, text: npt.NDArray[np.uint8], offsets: Ids) -> None:
        self.text = text
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        start, stop = self.offsets[number], self.offsets[number + 1]
        return _decoded(self.text[start:stop].tobytes())

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), DECODED_AT_ONCE):
            bounds = self.offsets[first : first + DECODED_AT_ONCE + 1]
            some = self.text[bounds[0] : bounds[-1]].tobytes()
            ends: list[int] = (bounds - bounds[0]).tolist()
            for start, stop in pairwise(ends):
                yield _decoded(some[start:stop])


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise BundleError(
            f"Expected names in UTF-8, got the bytes {text[:40]!r}: the file that they are in is "
            "damaged. Copy its folder again, or import anew."
        ) from None


class StoredNames(StoredStrings):
    """Distinct names, found by their keys."""

    def __init__(
        self,
        text: npt.NDArray[np.uint8],
        offsets: Ids,
        keys: npt.NDArray[np.uint64],
        order: Ids,
    ) -> None:
        """Takes names as ``packed_strings`` makes them.

        Args:
            text: their bytes.
            offsets: where each begins.
            keys: of each name.
            order: sorts the keys.
        """
        super().__init__(text, offsets)
        self.keys = keys
        self.order = order

    def find(self, name: Any) -> int | None:
        """Returns the number of a name; None if it is not there."""
        try:
            key = name_keys([name])[0]
        except (AttributeError, UnicodeEncodeError):  # no text, or none that a file can have
            return None
        place = int(np.searchsorted(self.keys, key, sorter=self.order))
        while place < len(self) and self.keys[self.order[place]] == key:
            if self[int(self.order[place])] == name:
                return int(self.order[place])
            place += 1
        return None
