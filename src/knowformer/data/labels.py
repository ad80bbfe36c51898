"""Labels: readable names for ids, kept beside a data set and shown wherever its names are shown.

A data set's folder may hold ``entity_names.txt`` and ``relation_names.txt``, an id and its readable
name a line, with a tab between them. Ids stay what facts, questions and files are written in.

A readable name may end in brackets that tell it from others, 'Barack Obama (Q76)'. The name before
them will do where it stands for one id.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from knowformer.errors import VocabularyError, printable, suggest
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import read_columns

ENTITY_FILE = "entity_names.txt"
RELATION_FILE = "relation_names.txt"
IN_BRACKETS = re.compile(r"(?<=\S) \([^()]*\)$")


@dataclass(frozen=True)
class Labels:
    """Readable names by id; an id without one is its own name."""

    entities: Mapping[str, str] = field(default_factory=dict[str, str])
    relations: Mapping[str, str] = field(default_factory=dict[str, str])

    def entity(self, name: str) -> str:
        """Returns an entity's readable name, as it can be shown: control characters escaped."""
        return printable(self.entities.get(name, name))

    def relation(self, name: str) -> str:
        """Returns a relation's, likewise."""
        return printable(self.relations.get(name, name))

    def find_entity(self, name: str, entities: Vocabulary) -> int:
        """Returns the id of an entity, given by its own or by its readable name."""
        return _find(name, entities, self.entities, self._entities_by_label)

    def find_relation(self, name: str, relations: Vocabulary) -> int:
        """Returns the id of a relation, given by its own or by its readable name."""
        return _find(name, relations, self.relations, self._relations_by_label)

    def has_entity(self, name: str, entities: Vocabulary) -> bool:
        """Returns True when some entity has that name or readable name; costs next to nothing."""
        return name in entities or name in self._entities_by_label

    def has_relation(self, name: str, relations: Vocabulary) -> bool:
        """Returns True when some relation has that name or readable name."""
        return name in relations or name in self._relations_by_label

    @cached_property
    def _entities_by_label(self) -> dict[str, list[str]]:
        return _by_label(self.entities)

    @cached_property
    def _relations_by_label(self) -> dict[str, list[str]]:
        return _by_label(self.relations)

    def updated(self, more: "Labels") -> "Labels":
        """Returns these labels with others over them."""
        if not more:
            return self
        return Labels({**self.entities, **more.entities}, {**self.relations, **more.relations})

    def __bool__(self) -> bool:
        return bool(self.entities or self.relations)


def read_labels(folder: Path) -> Labels:
    """Reads the label files of a data set's folder; without them every id is its own name.

    Raises:
        DataError: a line has not two columns, or is not UTF-8.
    """
    return Labels(_read(folder / ENTITY_FILE), _read(folder / RELATION_FILE))


def write_labels(folder: Path, labels: Labels) -> None:
    """Writes the label files of a data set's folder that is being made."""
    for name, of_kind in ((ENTITY_FILE, labels.entities), (RELATION_FILE, labels.relations)):
        if of_kind:
            lines = "".join(f"{id_}\t{label}\n" for id_, label in of_kind.items())
            (folder / name).write_text(lines, encoding="utf-8", errors="replace")


def read_label_file(path: Path) -> Labels:
    """Reads one file of ids and readable names, of entities and relations alike.

    Raises:
        DataError: the file is missing, not UTF-8, or a line has not two columns.
    """
    labels = dict(read_columns(path, ("id", "name")))
    return Labels(labels, labels)


def _by_label(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the ids of each readable name, and of each name before brackets that is none."""
    names: dict[str, list[str]] = {}
    short: dict[str, list[str]] = {}
    for name, label in labels.items():
        names.setdefault(label, []).append(name)
        if label != _short(label):
            short.setdefault(_short(label), []).append(name)
    return short | names


def _short(label: str) -> str:
    return IN_BRACKETS.sub("", label)


def _find(
    name: str,
    vocabulary: Vocabulary,
    labels: Mapping[str, str],
    by_label: Mapping[str, list[str]],
) -> int:
    if name in vocabulary or not labels:
        return vocabulary.id(name)
    meant = [known for known in by_label.get(name, []) if known in vocabulary]
    if len(meant) == 1:
        return vocabulary.id(meant[0])
    if meant:
        shown = ", ".join(map(repr, meant[:5])) + (" and others" if len(meant) > 5 else "")
        raise VocabularyError(
            f"Expected a readable name that stands for one {vocabulary.kind}, got {name!r}, which "
            f"stands for {len(meant)}: {shown}. Give one of those instead."
        )
    readable = [_short(labels[known]) for known in vocabulary if known in labels]
    hint = suggest(name, [*vocabulary, *readable]) or vocabulary.hint(name)
    raise VocabularyError(
        f"Expected one of {len(vocabulary):,} {vocabulary.kind} names or their readable names, got "
        f"{name!r}.{hint}"
    )


def _read(path: Path) -> Mapping[str, str]:
    if not path.is_file():
        return {}
    return dict(read_columns(path, ("id", "name")))
