"""KnowledgeGraph: two vocabularies, the facts, and the adjacency made from them once."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple, read_triples


class KnowledgeGraph:
    """Facts r(h, t) over named entities and relations.

    Entities may outnumber those that occur in facts: every entity is a candidate answer.
    """

    def __init__(
        self, entities: Vocabulary, relations: Vocabulary, facts: Int[Tensor, "N 3"]
    ) -> None:
        self.entities = entities
        self.relations = relations
        self.facts = facts

    @classmethod
    def from_triples(
        cls,
        triples: Sequence[NamedTriple],
        *,
        relations: Vocabulary | None = None,
        more_entities: Iterable[str] = (),
    ) -> "KnowledgeGraph":
        """Builds a graph from named triples; repeated triples count once.

        Args:
            triples: head, relation and tail names.
            relations: a model's relations, when the graph must use just those.
            more_entities: candidates that need not occur in the triples.

        Raises:
            VocabularyError: a triple has a relation outside ``relations``.
        """
        names = (name for head, _, tail in triples for name in (head, tail))
        entities = Vocabulary([*names, *more_entities], kind="entity")
        if relations is None:
            relations = Vocabulary((relation for _, relation, _ in triples), kind="relation")
        return cls(entities, relations, number_facts(triples, entities, relations))

    @classmethod
    def from_file(cls, path: str | Path) -> "KnowledgeGraph":
        """Builds a graph from a TSV file of triples."""
        return cls.from_triples(read_triples(Path(path)))

    @cached_property
    def adjacency(self) -> Adjacency:
        """Edges of the facts and their inverses, sorted once."""
        return Adjacency(
            self.facts, num_entities=len(self.entities), num_relations=len(self.relations)
        )

    @cached_property
    def entity_keys(self) -> npt.NDArray[np.uint64]:
        """A key per entity that follows its name: renumbering moves an entity's noise along."""
        return self.entities.keys()

    def same_as(self, other: "KnowledgeGraph") -> bool:
        """Returns True when names, their numbers and the facts are the same."""
        return self is other or (
            self.entities == other.entities
            and self.relations == other.relations
            and torch.equal(self.facts, other.facts)
        )

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({len(self.entities):,} entities, {len(self.relations):,} relations, "
            f"{len(self.facts):,} facts)"
        )


def number_facts(
    triples: Iterable[NamedTriple], entities: Vocabulary, relations: Vocabulary
) -> Int[Tensor, "N 3"]:
    """Returns distinct facts as ids (head, relation, tail), in order of first appearance."""
    rows = [(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in dict.fromkeys(triples)]
    return torch.tensor(rows, dtype=torch.long).reshape(-1, 3)
