"""Names to ids and back; an unknown name is answered with the nearest known spellings."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from knowformer.errors import VocabularyError, suggest
from knowformer.seeding import name_keys

MANY_NAMES = 60  # more than that are not listed in a message
SOME_NAMES = 12  # of many relations, to show what they look like


class Vocabulary:
    """An immutable list of distinct names, numbered in order of first appearance."""

    def __init__(self, names: Iterable[str], *, kind: str) -> None:
        self.names: tuple[str, ...] = tuple(dict.fromkeys(names))
        self.kind = kind  # "entity" or "relation", for messages
        self._ids = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.names == other.names

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self.kind} names)"

    def id(self, name: str) -> int:
        """Returns the id of ``name``.

        Raises:
            VocabularyError: the name is unknown; the message offers near spellings.
        """
        try:
            return self._ids[name]
        except KeyError:
            raise VocabularyError(
                f"Expected one of {len(self):,} {self.kind} names, got {name!r}.{self.hint(name)}"
            ) from None

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
        return name_keys(list(self.names))
