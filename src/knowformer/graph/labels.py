"""Labels: readable names for ids, kept beside a data set and shown wherever its names are shown.

A data set's folder may hold ``entity_names.txt`` and ``relation_names.txt``, an id and its readable
name a line, with a tab between them. Ids stay what facts, questions and files are written in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from knowformer.graph.triples_io import read_columns

ENTITY_FILE = "entity_names.txt"
RELATION_FILE = "relation_names.txt"


@dataclass(frozen=True)
class Labels:
    """Readable names by id; an id without one is its own name."""

    entities: Mapping[str, str] = field(default_factory=dict[str, str])
    relations: Mapping[str, str] = field(default_factory=dict[str, str])

    def entity(self, name: str) -> str:
        """Returns an entity's readable name."""
        return self.entities.get(name, name)

    def relation(self, name: str) -> str:
        """Returns a relation's readable name."""
        return self.relations.get(name, name)

    def __bool__(self) -> bool:
        return bool(self.entities or self.relations)


def read_labels(folder: Path) -> Labels:
    """Reads the label files of a data set's folder; without them every id is its own name.

    Raises:
        DataError: a line has not two columns, or is not UTF-8.
    """
    return Labels(_read(folder / ENTITY_FILE), _read(folder / RELATION_FILE))


def _read(path: Path) -> Mapping[str, str]:
    if not path.is_file():
        return {}
    return {name: label for name, label in read_columns(path, ("id", "name"))}
