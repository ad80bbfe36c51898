"""Question: names as a user gives them, ids as the model takes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from knowformer.answering.results import AskedFor
from knowformer.data.labels import Labels
from knowformer.errors import ConfigError
from knowformer.graph.knowledge_graph import KnowledgeGraph

ASKED = "?"  # stands for the part that is asked for, as None does


@dataclass(frozen=True)
class Question:
    """Two of head, relation and tail; the third is asked for. Ids are those of one graph."""

    head: int | None
    relation: int | None
    tail: int | None

    @property
    def asks_for(self) -> AskedFor:
        """Returns the part that is asked for."""
        if self.relation is None:
            return "relation"
        return "head" if self.head is None else "tail"


def build_question(
    graph: KnowledgeGraph,
    labels: Labels,
    *,
    head: str | None,
    relation: str | None,
    tail: str | None,
) -> Question:
    """Resolves names, or readable names, to ids.

    Raises:
        ConfigError: not exactly two of the three were given.
        VocabularyError: a name is unknown, or a readable name stands for several.
    """
    given = [part is not None for part in (head, relation, tail)]
    if sum(given) != 2:
        raise ConfigError(
            "Expected two of head, relation and tail, so that the third can be answered, got "
            f"{sum(given)}."
        )
    return Question(
        None if head is None else labels.find_entity(head, graph.entities),
        None if relation is None else labels.find_relation(relation, graph.relations),
        None if tail is None else labels.find_entity(tail, graph.entities),
    )


def question_parts(given: Any) -> dict[str, str | None]:
    """Returns head, relation and tail of a mapping or a sequence; None and '?' are asked for.

    Raises:
        ConfigError: it is neither, or a part is not a name.
    """
    names = ("head", "relation", "tail")
    parts: dict[str, Any]
    if isinstance(given, Mapping):
        parts = dict(cast("Mapping[str, Any]", given))
        unknown = [key for key in parts if key not in names]
        if unknown:
            raise ConfigError(f"Expected head, relation and tail as keys, got {unknown[0]!r}.")
    elif isinstance(given, tuple | list) and len(cast("list[Any]", given)) in (2, 3):
        parts = dict(zip(names, cast("list[Any]", given), strict=False))
    else:
        raise ConfigError(
            "Expected a question as (head, relation, tail) or with these keys, one of them None, "
            f"got {given!r}."
        )
    for name, value in parts.items():
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"Expected a name as {name}, got {value!r}.")
    return {name: None if parts.get(name) in (None, ASKED) else parts[name] for name in names}
