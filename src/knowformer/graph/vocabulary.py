"""Names to ids and back; an unknown name is answered with the nearest known spellings."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from threading import Lock

import numpy as np
import numpy.typing as npt

from knowformer.errors import VocabularyError, suggest
from knowformer.seeding import name_keys

MANY_NAMES = 60  # more than that are not listed in a message
SOME_NAMES = 12  # of many relations, to show what they look like


class Vocabulary:
    """An immutable list of distinct names, numbered in order of first appearance.

    A vocabulary and what is ``extended`` from it share one table, of which each knows its first
    names alone: a name more costs no copy of the others.
    """

    def __init__(self, names: Iterable[str], *, kind: str) -> None:
        self.kind = kind  # "entity" or "relation", for messages
        self._table = _Table(dict.fromkeys(names))
        self._size = len(self._table.names)

    def extended(self, names: Iterable[str]) -> "Vocabulary":
        """Returns a vocabulary with more names, numbered after those of this one."""
        new = [name for name in dict.fromkeys(names) if name not in self]
        if not new:
            return self
        result = Vocabulary.__new__(Vocabulary)
        result.kind = self.kind
        result._table = self._table.extended(self._size, new)
        result._size = self._size + len(new)
        if "_keys" in self.__dict__:
            result.__dict__["_keys"] = _frozen(np.concatenate([self._keys, name_keys(new)]))
        return result

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names, by id."""
        return tuple(self._table.names[: self._size])

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return self._table.ids.get(name, self._size) < self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary) or len(self) != len(other):
            return False
        return self._table is other._table or self.names == other.names

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self.kind} names)"

    def id(self, name: str) -> int:
        """Returns the id of ``name``.

        Raises:
            VocabularyError: the name is unknown; the message offers near spellings.
        """
        number = self._table.ids.get(name, self._size)
        if number < self._size:
            return number
        raise VocabularyError(
            f"Expected one of {len(self):,} {self.kind} names, got {name!r}.{self.hint(name)}"
        )

    def name(self, number: int) -> str:
        """Returns the name of an id, without a list of all names."""
        return self._table.names[number]

    def hint(self, name: str) -> str:
        """Returns near spellings of an unknown name, else names that exist if that may help."""
        near = suggest(name, self.names)
        if near or (self.kind != "relation" and len(self) > MANY_NAMES):
            return near
        shown = len(self) if len(self) <= MANY_NAMES else SOME_NAMES
        more = f" and {len(self) - shown:,} more" if len(self) > shown else ""
        return f" Known: {', '.join(self.names[:shown])}{more}."

    def keys(self) -> npt.NDArray[np.uint64]:
        """Returns a stable 64-bit key per name, whatever its id."""
        return self._keys

    @cached_property
    def _keys(self) -> npt.NDArray[np.uint64]:
        return _frozen(name_keys(list(self.names)))


class _Table:
    """Names and their ids, to which names are only ever added."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self.ids: dict[object, int] = {name: number for number, name in enumerate(self.names)}
        self._lock = Lock()

    def extended(self, size: int, names: list[str]) -> "_Table":
        """Adds names after the first ``size``: in place, or in a copy where others stand there."""
        with self._lock:
            if len(self.names) > size:
                return _Table([*self.names[:size], *names])
            # The list first: whoever sees an id finds its name.
            self.names += names
            self.ids |= {name: size + number for number, name in enumerate(names)}
            return self


def _frozen(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Snapshots share the keys: nobody may write into them."""
    keys.flags.writeable = False
    return keys
