"""Names to ids and back; an unknown name is answered with the nearest known spellings."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from operator import eq
from threading import Lock
from typing import overload

import numpy as np
import numpy.typing as npt

from knowformer.errors import VocabularyError, suggest
from knowformer.graph.stored_names import StoredNames
from knowformer.seeding import name_keys

MANY_NAMES = 60  # more than that are not listed in a message
SOME_NAMES = 12  # of many relations, to show what they look like
MOST_COMPARED = 1_000_000  # names; looking for near spellings among more takes too long


class Vocabulary:
    """An immutable list of distinct names, numbered in order of first appearance.

    A vocabulary and what is ``extended`` from it share one table, of which each knows its first
    names alone: a name more costs no copy of the others.
    """

    def __init__(self, names: Iterable[str], *, kind: str) -> None:
        self.kind = kind  # "entity" or "relation", for messages
        self._table = _Table(dict.fromkeys(names))
        self._size = len(self._table.added)

    @classmethod
    def of_stored(cls, names: StoredNames, *, kind: str) -> "Vocabulary":
        """Returns the vocabulary of names that stay where they are stored."""
        result = cls.__new__(cls)
        result.kind = kind
        result._table = _Table((), names)
        result._size = len(names)
        result.__dict__["_keys"] = names.keys
        return result

    @property
    def stored(self) -> StoredNames | None:
        """The first names, where these are stored; None: all are in memory."""
        return self._table.stored

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
    def names(self) -> Sequence[str]:
        """All names, by id."""
        stored, table = self._table.stored, self._table
        if stored is None:
            return tuple(table.added[: self._size])
        return stored if len(stored) == self._size else _ManyNames(self)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return self._table.find(name, self._size) < self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary) or len(self) != len(other):
            return False
        return self._table is other._table or all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self.names))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self.kind} names)"

    def id(self, name: str) -> int:
        """Returns the id of ``name``.

        Raises:
            VocabularyError: the name is unknown; the message offers near spellings.
        """
        number = self._table.find(name, self._size)
        if number < self._size:
            return number
        raise VocabularyError(
            f"Expected one of {len(self):,} {self.kind} names, got {name!r}.{self.hint(name)}"
        )

    def name(self, number: int) -> str:
        """Returns the name of an id, without a list of all names."""
        return self._table.name(number)

    def hint(self, name: str) -> str:
        """Returns near spellings of an unknown name, else names that exist if that may help."""
        near = suggest(name, self.names) if len(self) <= MOST_COMPARED else ""
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


class _ManyNames(Sequence[str]):
    """The names of a vocabulary of which some are stored, each made when it is asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def __len__(self) -> int:
        return len(self._vocabulary)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        name, numbers = self._vocabulary.name, range(len(self))[index]
        return name(numbers) if isinstance(numbers, int) else [name(number) for number in numbers]

    def __iter__(self) -> Iterator[str]:
        stored = self._vocabulary.stored or ()
        return chain(stored, map(self._vocabulary.name, range(len(stored), len(self))))


class _Table:
    """Names and their ids, to which names are only ever added; the first may be stored ones."""

    def __init__(self, names: Iterable[str], stored: StoredNames | None = None) -> None:
        self.stored = stored
        self._first = 0 if stored is None else len(stored)
        self.added = list(names)
        self._ids: dict[object, int] = {
            name: number for number, name in enumerate(self.added, start=self._first)
        }
        self._lock = Lock()

    def find(self, name: object, default: int) -> int:
        """Returns the id of a name."""
        number = self._ids.get(name)
        if number is None and self.stored is not None:
            number = self.stored.find(name)
        return default if number is None else number

    def name(self, number: int) -> str:
        """Returns the name of an id."""
        if self.stored is not None and number < self._first:
            return self.stored[number]
        return self.added[number - self._first]

    def extended(self, size: int, names: list[str]) -> "_Table":
        """Adds names after the first ``size``: in place, or in a copy where others stand there."""
        with self._lock:
            own = size - self._first
            if len(self.added) > own:
                return _Table([*self.added[:own], *names], self.stored)
            # The list first: whoever sees an id finds its name.
            self.added += names
            self._ids |= {name: size + number for number, name in enumerate(names)}
            return self


def _frozen(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Snapshots share the keys: nobody may write into them."""
    keys.flags.writeable = False
    return keys
