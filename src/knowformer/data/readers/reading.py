"""Reading: how files of facts are read, and what their readers report besides rows.

A reader is a function of a path and a reading that yields chunks of rows; ``formats`` lists them.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from knowformer.data.readers.columns import FACT_ROLES, Dialect, Layout
from knowformer.data.readers.rows import BadRows

ByteProgress = Callable[[int], None]
"""Called while a file is read, with how many of its bytes have been read."""


def _no_progress(_: int) -> None:
    pass


@dataclass
class Reading:
    """One reading of several files."""

    dialect: Dialect = field(default_factory=Dialect)
    roles: tuple[str, ...] = FACT_ROLES
    """The columns wanted of a table; the dialect's time follows them."""
    keep_literals: bool = False
    """Make entities of RDF literals."""
    bad_rows: BadRows = field(default_factory=BadRows)
    progress: ByteProgress = _no_progress

    notes: list[str] = field(default_factory=list[str])
    """How each table was read, a sentence each."""
    first_rows: list[tuple[Path, list[str]]] = field(default_factory=list[tuple[Path, list[str]]])
    """First lines that were read as facts, though they might be headers."""
    labels: "FileLabels" = field(default_factory=lambda: FileLabels())
    left_out: Counter[str] = field(default_factory=Counter[str])
    """RDF triples left out for their literals, by predicate."""
    blank_nodes: Iterator[int] = field(default_factory=count)
    """Numbers for blank nodes, which have no name of their own."""

    def note_layout(self, path: Path, layout: Layout) -> None:
        """Records how a table is read."""
        self.notes.append(f"{path}: {layout.describe()}.")
        if not layout.has_header:
            chosen = [layout.first_row[i] for i in layout.indices]
            self.first_rows.append((path, chosen[: len(self.roles)]))


class FileLabels:
    """Readable names that files give: the first one of an id, but a preferred one before others."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._preferred: set[str] = set()

    def add(self, id_: str, name: str, *, is_preferred: bool = True) -> None:
        """Takes a name, unless the id has one that is as good."""
        name = " ".join(name.split())
        if name and (id_ not in self.names or (is_preferred and id_ not in self._preferred)):
            self.names[id_] = name
            if is_preferred:
                self._preferred.add(id_)
