"""How questions are answered, in names: how many answers, and which entities may answer."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

import numpy as np
from jaxtyping import Int

from knowformer.data.labels import Labels
from knowformer.errors import ConfigError, DataError, VocabularyError
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.roles import roles_of
from knowformer.storage.triples_io import read_columns

SIDES = {":head": 0, ":tail": 1}
FORMS = "'R:head', 'R:tail' (an entity that is head or tail of R) or 'R=T' (one with that fact)"

Names = Iterable[str] | str | Path
"""Names of entities, or a file with one a line."""


class HowToAnswer(TypedDict, total=False):
    """Options of ``Reasoner.answer`` and its like."""

    k: int
    """How many answers; 10 if not given."""
    new_only: bool
    """Leave out answers that are known facts."""
    samples: int
    """Draws of the identity noise; more than one adds a spread to each answer."""
    typical: bool
    """Say how each answer ranks for other heads (or tails) of the relation."""
    candidates: Names | None
    """The only entities that may answer a question for a head or a tail."""
    of_type: str | None
    """Only entities of a type may: ``R:head``, ``R:tail`` or ``R=T``."""


def find_candidates(
    graph: KnowledgeGraph,
    labels: Labels,
    *,
    names: Names | None = None,
    of_type: str | None = None,
) -> tuple[int, ...] | None:
    """Returns the ids of the entities that may answer, rising; None: every entity may.

    Args:
        graph: gives the entities.
        labels: their readable names.
        names: names or readable names, or a file with one a line.
        of_type: ``R:head`` or ``R:tail``: heads or tails of the relation R; ``R=T``: entities with
            the fact (entity, R, T), where types are facts.

    Raises:
        DataError: the file cannot be read, or no entity is left.
        VocabularyError: a name is unknown.
        ConfigError: the type has another form.
    """
    chosen = np.arange(len(graph.entities))
    if names is not None:
        chosen = np.intersect1d(chosen, _named(graph, labels, names))
    if of_type is not None:
        chosen = np.intersect1d(chosen, _of_type(graph, labels, of_type))
    if len(chosen) == 0:
        asked = "candidates" if of_type is None else f"candidates of type {of_type!r}"
        raise DataError(f"Expected {asked}, found none in the graph.")
    return None if names is None and of_type is None else tuple(chosen.tolist())


def _named(graph: KnowledgeGraph, labels: Labels, names: Names) -> list[int]:
    if isinstance(names, str | Path):
        listed = [fields[0] for fields in read_columns(Path(names), ("name",))]
        where = f" in {names}"
    else:
        listed, where = list(names), ""
    unknown = [name for name in listed if not labels.has_entity(name, graph.entities)]
    if unknown:
        try:
            labels.find_entity(unknown[0], graph.entities)  # says which names are near
        except VocabularyError as error:
            more = f" Unknown too: {_shown(unknown[1:])}." if unknown[1:] else ""
            raise VocabularyError(
                f"{len(unknown):,} of {len(listed):,} candidates{where} are unknown. {error}{more}"
            ) from None
    return [labels.find_entity(name, graph.entities) for name in listed]


def _of_type(graph: KnowledgeGraph, labels: Labels, of_type: str) -> Int[np.ndarray, " N"]:
    roles = roles_of(graph.adjacency)
    for ending, side in SIDES.items():
        if of_type.endswith(ending):
            relation = labels.find_relation(of_type.removesuffix(ending), graph.relations)
            return roles.entities(inverse_of(relation, len(graph.relations)) if side else relation)
    relation, mark, tail = of_type.partition("=")
    if not mark:
        raise ConfigError(f"Expected a type as {FORMS}, got {of_type!r}.")
    number = labels.find_relation(relation, graph.relations)
    category = labels.find_entity(tail, graph.entities)
    facts = graph.facts.numpy()
    return facts[(facts[:, 1] == number) & (facts[:, 2] == category), 0]


def _shown(names: list[str], most: int = 5) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and more" if len(names) > most else shown
