"""Rows of names as readers yield them: in chunks, by column, each row with its place in the file.

A reader knows its format; which names are usable, and what happens to a bad row, is decided here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from knowformer.errors import DataError

MAX_SHOWN = 60

# A data set's files are lines of tab-separated names. Undecodable bytes are read as lone surrogates
# (PEP 383), so that a bad byte is found where it matters, with its line.
_UNUSABLE = re.compile(r"[\t\n\r\ud800-\udfff]|^\ufeff|^\s*$")


@dataclass(frozen=True)
class Chunk:
    """Some rows of a source, by column."""

    path: Path
    columns: tuple[Sequence[str], ...]
    numbers: Sequence[int]
    """The line, row or triple of the file that each row comes from."""
    unit: Literal["line", "row", "triple"] = "line"

    def place(self, index: int) -> str:
        """Returns the place of one of the rows, as error messages name it."""
        return place(self.path, self.numbers[index], self.unit)


def place(path: Path, number: int, unit: str = "line") -> str:
    """Returns a place in a file, as error messages name it."""
    return f"{path}:{number}" if unit == "line" else f"{unit} {number:,} of {path}"


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used."""

    place: str
    reason: str


@dataclass
class BadRows:
    """Rows that cannot be used: the first one ends the reading, or all are skipped and listed.

    Args:
        skip: list them and go on.
    """

    skip: bool = False
    rows: list[BadRow] = field(default_factory=list[BadRow])

    def add(self, where: str, reason: str, hint: str = "") -> None:
        """Takes a row that cannot be used.

        Args:
            where: its place, in words.
            reason: what was expected and what was found, without a full stop.
            hint: what to do about it.

        Raises:
            DataError: bad rows are not skipped.
        """
        if not self.skip:
            at = "at" if ":" in where.rpartition("/")[2] else "in"
            raise DataError(
                f"{reason} {at} {where}.{hint} Mend it, or skip bad rows with `skip_bad=True`."
            )
        self.rows.append(BadRow(where, reason))


def is_usable(name: str) -> bool:
    """Returns True when a name can be written to a data set's files."""
    return _UNUSABLE.search(name) is None


def why_unusable(name: str, what: str) -> tuple[str, str]:
    """Returns what is wrong with a name that is not usable, and what to do about it."""
    if not name.strip():
        return f"Expected a name as {what}, got an empty one", ""
    for character in name:
        if "\udc80" <= character <= "\udcff":
            return f"Expected UTF-8 text, got byte 0x{ord(character) - 0xDC00:02x}", (
                " Save the file as UTF-8."
            )
    return (
        f"Expected a name without tabs and line breaks as {what}, got {shorten(repr(name))}",
        " Replace them: facts are kept as lines of tab-separated names.",
    )


def shorten(text: str) -> str:
    """Returns text that fits into a sentence."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
