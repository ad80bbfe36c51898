"""audit: counts of a data set, and what in it would flatter or spoil a result.

Numbers are computed here, in a few seconds for a million facts; ``findings`` interprets them.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import BaseModel

from knowformer.audit.findings import Finding, find
from knowformer.audit.links import num_linked, num_linked_twice
from knowformer.audit.relation_overlap import RelationOverlap, find_overlaps, leak_mask
from knowformer.audit.text import audit_markdown
from knowformer.data.dataset import Dataset, GraphSource, Split
from knowformer.data.fact_table import first_occurrences
from knowformer.data.loading import load_dataset
from knowformer.graph.categories import CATEGORIES, relation_categories
from knowformer.graph.fact_index import BY_PAIR, FactIndex, Ids, sorted_distinct
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.traversal import connected_components
from knowformer.tables import to_frame

if TYPE_CHECKING:
    import pandas

QUANTILES = {"least": 0.0, "25%": 0.25, "median": 0.5, "75%": 0.75, "90%": 0.9, "99%": 0.99}
NUM_HUBS = 10


class Hub(BaseModel):
    """An entity of many facts."""

    entity: str
    label: str
    degree: int


class Degrees(BaseModel):
    """In how many facts entities occur."""

    mean: float
    quantiles: dict[str, float]
    most: int
    num_once: int
    hubs: list[Hub]


class RelationCounts(BaseModel):
    """One relation."""

    relation: str
    label: str
    category: str
    facts: int
    heads: int
    tails: int


class NamedOverlap(BaseModel):
    """A relation whose facts nearly all occur in another one, forwards or backwards."""

    kind: str
    relation: str
    label: str
    other: str
    other_label: str
    common: int
    share: float
    """Fraction of the relation's facts that the other relation has too."""
    share_of_other: float


class Components(BaseModel):
    """Parts of the graph that no fact links to each other."""

    number: int
    largest: int
    largest_share: float


class HeldOut(BaseModel):
    """Facts to be predicted, compared with the graph they are predicted from."""

    facts: int
    repeated: int
    """Also in the graph they are predicted from."""
    linked: int
    """Whose two entities a fact of the graph links, by any relation, in any direction."""
    leaked: int
    """With a near-duplicate or near-inverse in the graph."""
    unseen_entities: int
    with_unseen: int
    """With an entity that has no fact in the graph."""


class Audit(BaseModel):
    """Counts of a data set, and the findings about it."""

    dataset: str
    inductive: bool
    entities: int
    relations: int
    facts: dict[str, int]
    repeated_rows: int
    self_loops: int
    degrees: Degrees
    categories: dict[str, dict[str, int]]
    components: Components
    overlaps: list[NamedOverlap]
    linked_in_training: int
    """Training facts whose two entities another training fact links."""
    held_out: dict[str, HeldOut]
    by_relation: list[RelationCounts]
    findings: list[Finding]

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns a row per relation: category, facts, heads and tails.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        columns = list(RelationCounts.model_fields)
        rows = [[getattr(row, column) for column in columns] for row in self.by_relation]
        return to_frame(columns, rows)

    def __str__(self) -> str:
        return audit_markdown(self)

    def _repr_markdown_(self) -> str:  # what a notebook shows
        return audit_markdown(self)

    def __repr__(self) -> str:
        levels = Counter(finding.level for finding in self.findings)
        counts = ", ".join(f"{number} {level}" for level, number in levels.items())
        return f"Audit({self.dataset}: {counts}; print it to read them)"


def audit(source: GraphSource, *, seed: int = 0, repeated_rows: int = 0) -> Audit:
    """Audits a data set.

    Degrees, relations and components are those of the training graph with the facts of all splits;
    held-out facts are compared with the graph that they are predicted from.

    Args:
        source: a path, a name of the catalogue, a graph, or a data set.
        seed: decides the split of a source that has none of its own.
        repeated_rows: rows that the import saw twice.
    """
    dataset = load_dataset(source, seed=seed)
    graph = dataset.train.graph
    facts = dataset.train.known.numpy()
    facts = facts[first_occurrences(facts)]
    sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
    overlaps = find_overlaps(facts, **sizes)
    by_relation = _by_relation(dataset, facts)
    graphs = (dataset.valid.graph, dataset.test.graph)  # often one
    indices = {key: _index(graph) for key, graph in {id(g): g for g in graphs}.items()}
    content: dict[str, Any] = {
        "dataset": dataset.name,
        "inductive": dataset.is_inductive,
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "facts": {
            split.name: len(split.facts) for split in (dataset.train, dataset.valid, dataset.test)
        },
        "repeated_rows": repeated_rows,
        "self_loops": int((facts[:, 0] == facts[:, 2]).sum()),
        "degrees": _degrees(dataset, facts),
        "categories": _categories(by_relation),
        "components": _components(facts, len(graph.entities)),
        "overlaps": [_named(overlap, dataset) for overlap in overlaps],
        "linked_in_training": num_linked_twice(dataset.train.facts.numpy(), len(graph.entities)),
        "held_out": {
            split.name: _held_out(split, overlaps, indices[id(split.graph)])
            for split in (dataset.valid, dataset.test)
        },
        "by_relation": by_relation,
        "findings": [],
    }
    numbers = Audit(**content)
    return numbers.model_copy(update={"findings": find(numbers)})


def _degrees(dataset: Dataset, facts: Ids) -> Degrees:
    entities = dataset.train.graph.entities
    degrees = np.bincount(facts[:, [0, 2]].ravel(), minlength=len(entities))
    hubs = np.argsort(-degrees, kind="stable")[:NUM_HUBS]
    return Degrees(
        mean=float(degrees.mean()),
        quantiles={
            name: float(value)
            for name, value in zip(
                QUANTILES, np.quantile(degrees, list(QUANTILES.values())), strict=True
            )
        },
        most=int(degrees.max()),
        num_once=int((degrees == 1).sum()),
        hubs=[
            Hub(entity=name, label=dataset.labels.entity(name), degree=int(degrees[i]))
            for i, name in zip(hubs.tolist(), map(entities.name, hubs.tolist()), strict=True)
        ],
    )


def _by_relation(dataset: Dataset, facts: Ids) -> list[RelationCounts]:
    number = len(dataset.relations)
    categories = relation_categories(torch.from_numpy(facts), number)
    counts = np.bincount(facts[:, 1], minlength=number)
    partners = [_num_distinct(facts[:, 1], facts[:, side], number) for side in (0, 2)]
    rows = [
        RelationCounts(
            relation=name,
            label=dataset.labels.relation(name),
            category=categories[i],
            facts=int(counts[i]),
            heads=int(partners[0][i]),
            tails=int(partners[1][i]),
        )
        for i, name in enumerate(dataset.relations)
    ]
    return sorted(rows, key=lambda row: -row.facts)


def _num_distinct(relations: Ids, partners: Ids, num_relations: int) -> Ids:
    width = np.int64(partners.max(initial=0) + 1)
    keys = sorted_distinct(relations * width + partners)
    return np.bincount(keys // width, minlength=num_relations)


def _categories(rows: list[RelationCounts]) -> dict[str, dict[str, int]]:
    return {
        category: {
            "relations": sum(row.category == category for row in rows),
            "facts": sum(row.facts for row in rows if row.category == category),
        }
        for category in CATEGORIES
    }


def _components(facts: Ids, num_entities: int) -> Components:
    lowest = connected_components(facts[:, 0], facts[:, 2], num_entities)
    sizes = np.bincount(lowest, minlength=1)
    largest = int(sizes.max())
    number = int((sizes > 0).sum())
    return Components(number=number, largest=largest, largest_share=largest / max(1, num_entities))


def _held_out(split: Split, overlaps: list[RelationOverlap], index: FactIndex) -> HeldOut:
    facts, evidence = split.facts.numpy(), split.graph.facts.numpy()
    seen = np.zeros(len(split.graph.entities), dtype=bool)
    seen[evidence[:, [0, 2]]] = True
    unseen = ~seen[facts[:, [0, 2]]]
    return HeldOut(
        facts=len(facts),
        repeated=int(index.has_fact(facts).sum()),
        linked=num_linked(facts, evidence, len(split.graph.entities)),
        leaked=int(leak_mask(facts, index, overlaps).sum()),
        unseen_entities=len(sorted_distinct(facts[:, [0, 2]][unseen])),
        with_unseen=int(unseen.any(axis=1).sum()),
    )


def _index(graph: KnowledgeGraph) -> FactIndex:
    sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
    return FactIndex.of(graph.facts.numpy(), BY_PAIR, **sizes)


def _named(overlap: RelationOverlap, dataset: Dataset) -> NamedOverlap:
    names = dataset.relations.names
    relation, other = names[overlap.relation], names[overlap.other]
    return NamedOverlap(
        kind=overlap.kind,
        relation=relation,
        label=dataset.labels.relation(relation),
        other=other,
        other_label=dataset.labels.relation(other),
        common=overlap.common,
        share=overlap.share,
        share_of_other=overlap.share_of_other,
    )
