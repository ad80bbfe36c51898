"""KnowledgeGraph: two vocabularies, the facts, and the adjacency made from them once.

A graph is a value. One that has grown is another graph, a snapshot with a higher version, which
shares with the one before all that did not change.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.errors import DataError
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.fact_index import Ids
from knowformer.graph.fact_list import FactList
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple, read_triples


class KnowledgeGraph:
    """Facts r(h, t) over named entities and relations.

    Entities may outnumber those that occur in facts: every entity is a candidate answer.
    """

    def __init__(
        self,
        entities: Vocabulary,
        relations: Vocabulary,
        facts: Int[Tensor, "N 3"] | FactList,
        *,
        version: int = 0,
    ) -> None:
        self.entities = entities
        self.relations = relations
        self.version = version  # how many changes came before this snapshot
        self._facts = facts if isinstance(facts, FactList) else FactList.of(facts)

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

    @property
    def facts(self) -> Int[Tensor, "N 3"]:
        """The facts as ids (head, relation, tail), in order of first appearance."""
        return self._facts.facts

    @cached_property
    def adjacency(self) -> Adjacency:
        """Edges of the facts and their inverses, sorted once."""
        return Adjacency(
            self.facts, num_entities=len(self.entities), num_relations=len(self.relations)
        )

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the facts and of all names."""
        return fingerprint_of(self, self.adjacency.by_query.keys)

    @property
    def entity_keys(self) -> npt.NDArray[np.uint64]:
        """A key per entity that follows its name: renumbering moves an entity's noise along."""
        return self.entities.keys()

    def with_facts(
        self,
        added: Iterable[NamedTriple] = (),
        removed: Iterable[NamedTriple] = (),
        *,
        more_entities: Iterable[str] = (),
    ) -> "KnowledgeGraph":
        """Returns the graph after a change: a snapshot of the next version; this one stays.

        Entities keep their ids and new ones follow; an entity that loses its last fact remains a
        candidate. To add a fact that is there changes nothing, a fact both added and removed stays,
        and where nothing changes the graph itself is returned. The first change sorts the facts, as
        every use of them does; later ones copy what they do not share.

        Args:
            added: named triples.
            removed: named triples that are facts of this graph.
            more_entities: candidates that need not occur in the triples; numbered before those
                that do.

        Raises:
            VocabularyError: a relation is not among the graph's, or an entity of a fact to remove.
            DataError: a fact to remove is not there.
        """
        come, gone = dict.fromkeys(added), dict.fromkeys(removed)
        for _, relation, _ in come:
            self.relations.id(relation)
        leaving = number_facts(gone, self.entities, self.relations)
        for triple, is_there in zip(gone, self.adjacency.has_fact(leaving).tolist(), strict=True):
            if not is_there:
                raise DataError(
                    f"Expected facts of the graph to remove, got {triple}, which is not one of "
                    f"its {self.adjacency.num_edges // 2:,}."
                )
        present = self.holds(list(come))
        new = [triple for triple, is_there in zip(come, present, strict=True) if not is_there]
        old = [triple for triple in gone if triple not in come]
        names = (name for head, _, tail in new for name in (head, tail))
        entities = self.entities.extended([*more_entities, *names])
        if not new and not old and entities is self.entities:
            return self
        changes = {
            "added": number_facts(new, entities, self.relations),
            "removed": number_facts(old, entities, self.relations),
        }
        grown = KnowledgeGraph(
            entities, self.relations, self._facts.changed(**changes), version=self.version + 1
        )
        grown.adjacency = self.adjacency.changed(**changes, num_entities=len(entities))
        return grown

    def with_relations(self, relations: Vocabulary) -> "KnowledgeGraph":
        """Returns the graph over other relations, say a model's, which include those of its facts.

        Where they are the same, that is the graph itself.

        Raises:
            VocabularyError: a fact has a relation that is not among them.
        """
        if relations == self.relations:
            return self
        facts = renumber_relations(self.facts, self.relations, relations)
        return KnowledgeGraph(self.entities, relations, facts, version=self.version)

    def holds(self, triples: Sequence[NamedTriple]) -> list[bool]:
        """Returns which named triples are facts of the graph; their entities may be unknown.

        Raises:
            VocabularyError: a relation is not among the graph's.
        """
        entities, relations = self.entities, self.relations
        named = {
            place: (entities.id(head), relations.id(relation), entities.id(tail))
            for place, (head, relation, tail) in enumerate(triples)
            if head in entities and tail in entities
        }
        facts = torch.tensor(list(named.values()), dtype=torch.long).reshape(-1, 3)
        are_facts = dict(zip(named, self.adjacency.has_fact(facts).tolist(), strict=True))
        return [are_facts.get(place, False) for place in range(len(triples))]

    def same_as(self, other: "KnowledgeGraph") -> bool:
        """Returns True when names, their numbers and the facts are the same."""
        return self is other or (
            self.entities == other.entities
            and self.relations == other.relations
            and torch.equal(self.facts, other.facts)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Edges are sorted again where the graph arrives: sorting is quicker than sending them.
        facts = self.facts.numpy()
        names = [tuple(vocabulary.names) for vocabulary in (self.entities, self.relations)]
        return _rebuild, (*names, facts, self.version)

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({len(self.entities):,} entities, {len(self.relations):,} relations, "
            f"{len(self.facts):,} facts)"
        )


def _rebuild(
    entities: Iterable[str], relations: Iterable[str], facts: Ids, version: int
) -> KnowledgeGraph:
    return KnowledgeGraph(
        Vocabulary(entities, kind="entity"),
        Vocabulary(relations, kind="relation"),
        torch.from_numpy(facts),
        version=version,
    )


def fingerprint_of(graph: KnowledgeGraph, known: Ids) -> str:
    """Returns a checksum of a graph's names and of the facts that are known of it, as keys."""
    digest = hashlib.sha256(np.ascontiguousarray(known).data)
    for vocabulary in (graph.entities, graph.relations):
        digest.update(json.dumps(list(vocabulary)).encode())
    return digest.hexdigest()


def number_facts(
    triples: Iterable[NamedTriple], entities: Vocabulary, relations: Vocabulary
) -> Int[Tensor, "N 3"]:
    """Returns distinct facts as ids (head, relation, tail), in order of first appearance."""
    rows = [(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in dict.fromkeys(triples)]
    return torch.tensor(rows, dtype=torch.long).reshape(-1, 3)


def renumber_relations(
    facts: Int[Tensor, "N 3"], old: Vocabulary, new: Vocabulary
) -> Int[Tensor, "N 3"]:
    """Returns facts with the relation numbers of another vocabulary.

    Raises:
        VocabularyError: a fact has a relation that is not among the new ones.
    """
    heads, numbers, tails = facts.unbind(1)
    number_of = torch.zeros(len(old), dtype=torch.long)
    for number in torch.bincount(numbers).nonzero().flatten().tolist():
        number_of[number] = new.id(old.name(number))
    return torch.stack([heads, number_of[numbers], tails], 1)
