"""Dataset: train, valid and test, each with its own fact graph.

Transductive, inductive and single-file data are one thing here: a split is a list of facts to be
predicted, the graph whose facts may be used for it, and the facts known to be true (the filter).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.choices import SplitName
from knowformer.data.labels import Labels
from knowformer.data.splitting import SPLIT_IDS, SplitSizes, split_by_seed
from knowformer.errors import DataError, printable, shortened
from knowformer.graph.fact_index import Ids
from knowformer.graph.knowledge_graph import KnowledgeGraph, number_facts, renumber_relations
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple

SPLIT_NAMES: tuple[SplitName, ...] = ("train", "valid", "test")
HOMOGENEOUS_RELATION = "linked_to"


@dataclass(frozen=True)
class Split:
    """Facts to be predicted, the graph to predict them from, and what is known to be true."""

    name: SplitName
    graph: KnowledgeGraph
    facts: Int[Tensor, "N 3"]
    known: Int[Tensor, "K 3"]  # removed from the candidates when ranking (filtered setting)
    stored_known: KnowledgeGraph | None = None  # the graph of those, where its edges are stored

    def known_graph(self) -> KnowledgeGraph:
        """Returns the graph of all facts known to be true."""
        if self.stored_known is not None:
            return self.stored_known
        return KnowledgeGraph(self.graph.entities, self.graph.relations, self.known)


@dataclass(frozen=True)
class TrainingSplits:
    """All that training and model selection get to see: no test facts, not even as a filter."""

    train: Split
    valid: Split


@dataclass(frozen=True, repr=False)
class Dataset:
    """A named data set with its three splits."""

    name: str
    train: Split
    valid: Split
    test: Split
    labels: Labels = field(default_factory=Labels)
    folder: Path | None = None
    """Where it is mapped from; None: it is in memory."""

    def __post_init__(self) -> None:
        """Makes the name one that can be shown: it may be that of a folder, or from a file."""
        object.__setattr__(self, "name", shortened(printable(self.name)))

    @property
    def relations(self) -> Vocabulary:
        """The relations of all splits: those of the training facts."""
        return self.train.graph.relations

    @property
    def is_inductive(self) -> bool:
        """Returns True when test facts are predicted from a graph not seen in training."""
        return self.test.graph is not self.train.graph

    @staticmethod
    def from_triples(
        train: Sequence[NamedTriple],
        valid: Sequence[NamedTriple] = (),
        test: Sequence[NamedTriple] = (),
        *,
        name: str = "triples",
        seed: int = 0,
    ) -> "Dataset":
        """Builds a data set from named triples; repeated triples count once.

        Args:
            train: head, relation and tail names; split by the seed, as a single file is, if no
                other facts are given.
            valid: facts to choose weights by.
            test: facts to measure by.
            name: the data set's name.
            seed: decides the split.

        Raises:
            DataError: there are too few facts to hold any out, only one of valid and test is
                given, or they have a relation without a training fact.
        """
        graph = KnowledgeGraph.from_triples([*train, *valid, *test])
        if not valid and not test:
            return make_dataset(graph, name=name, seed=seed)
        if not valid or not test:
            raise DataError("Expected facts for both `valid` and `test`, or for none, got one.")
        splits = (number_facts(s, graph.entities, graph.relations) for s in (train, valid, test))
        facts = [split.numpy() for split in splits]
        return build_dataset(name, facts, graph.entities.names, graph.relations.names)

    def with_relations(self, relations: Vocabulary) -> "Dataset":
        """Returns the data set over a model's relations, which include those of its facts.

        Raises:
            VocabularyError: a fact has a relation that is not among them.
        """
        if relations == self.relations:
            return self
        splits = (self.train, self.valid, self.test)
        graphs = {id(split.graph): split.graph.with_relations(relations) for split in splits}
        renumbered = (
            Split(
                split.name,
                graphs[id(split.graph)],
                renumber_relations(split.facts, self.relations, relations),
                renumber_relations(split.known, self.relations, relations),
            )
            for split in splits
        )
        return Dataset(self.name, *renumbered, labels=self.labels)

    def split(self, name: str) -> Split:
        """Returns the split called ``name``."""
        splits = {split.name: split for split in (self.train, self.valid, self.test)}
        if name not in splits:
            raise DataError(f"Expected a split among {', '.join(splits)}, got {name!r}.")
        return splits[name]

    def __repr__(self) -> str:
        facts = ", ".join(f"{len(s.facts):,} {s.name}" for s in (self.train, self.valid, self.test))
        graph = self.train.graph
        sizes = f"{len(graph.entities):,} entities, {len(graph.relations):,} relations"
        return f"Dataset({self.name}: {sizes}, facts: {facts})"

    def same_as(self, other: "Dataset") -> bool:
        """Returns True when every split has the same graph and facts; the name does not count."""
        pairs = ((self.train, other.train), (self.valid, other.valid), (self.test, other.test))
        return all(a.graph.same_as(b.graph) and torch.equal(a.facts, b.facts) for a, b in pairs)

    def for_training(self) -> TrainingSplits:
        """Returns what training may see; validation is filtered by train and valid facts alone.

        Reports filter validation by test facts too, as the field does. For choosing weights that
        would let test facts in through the back door, so the figure seen in training is lower.
        """
        if self.folder is None:
            visible = torch.cat([self.valid.graph.facts, self.valid.facts])
        else:  # they stand there, one after the other
            visible = self.valid.known[: len(self.train.facts) + len(self.valid.facts)]
        return TrainingSplits(
            train=replace(self.train, known=self.train.facts, stored_known=None),
            valid=replace(self.valid, known=visible, stored_known=None),
        )

    def without_test(self) -> "Dataset":
        """Returns the data set without its test facts: none to predict, none in a filter."""
        splits, none = self.for_training(), self.train.facts[:0]
        test = Split("test", self.train.graph, none, none)
        return Dataset(self.name, splits.train, splits.valid, test, labels=self.labels)


GraphSource = str | Path | KnowledgeGraph | Dataset
"""A path, a name of the catalogue, a graph, or a data set."""


def build_dataset(
    name: str,
    facts: Sequence[Ids],
    entities: Sequence[str],
    relations: Sequence[str] | Vocabulary,
    *,
    labels: Labels | None = None,
) -> Dataset:
    """Builds a data set whose three splits are predicted from the training facts.

    The same facts give the same data set, whether they come from files, from an import or from
    another library: entities are numbered by first appearance, head before tail, those of training
    facts first; so are relations.

    Args:
        name: the data set's name.
        facts: (N, 3) of train, valid and test: head, relation and tail as positions in the names.
            The facts of a split are distinct.
        entities: entity names; those without a fact are left out.
        relations: relation names; those without a training fact are left out. A vocabulary, such as
            a trained model's, is kept as it is.
        labels: readable names.

    Raises:
        DataError: valid or test has a relation without a training fact.
    """
    used = np.concatenate([split[:, [0, 2]].ravel() for split in facts])
    entity_names, entity_ids = _number_by_appearance(used, entities)
    if isinstance(relations, Vocabulary):
        relation_ids = np.arange(len(relations))
    else:
        relation_names, relation_ids = _number_by_appearance(facts[0][:, 1], relations)
        for split_name, split in zip(SPLIT_NAMES, facts, strict=True):
            untrained = split[relation_ids[split[:, 1]] < 0, 1]
            if len(untrained):
                raise DataError(
                    "Expected relations that occur in the training facts, got "
                    f"{relations[untrained[0]]!r} in {split_name}."
                )
        relations = Vocabulary(relation_names, kind="relation")
    train, valid, test = (
        torch.from_numpy(np.stack([entity_ids[h], relation_ids[r], entity_ids[t]], axis=1))
        for h, r, t in (split.T for split in facts)
    )
    graph = KnowledgeGraph(Vocabulary(entity_names, kind="entity"), relations, train)
    known = torch.cat([train, valid, test])
    return Dataset(
        name,
        train=Split("train", graph, train, known),
        valid=Split("valid", graph, valid, known),
        test=Split("test", graph, test, known),
        labels=labels or Labels(),
    )


def _number_by_appearance(used: Ids, names: Sequence[str]) -> tuple[list[str], Ids]:
    """Returns the names in use by first appearance, and the new id of each old one."""
    first = np.full(len(names), len(used))
    # The last assignment stays: that of the first place.
    first[used[::-1]] = np.arange(len(used))[::-1]
    order = np.argsort(first, kind="stable")
    old: list[int] = order[: np.count_nonzero(first < len(used))].tolist()
    ids = np.full(len(names), -1, dtype=np.int64)
    ids[old] = np.arange(len(old))
    return [names[i] for i in old], ids


def make_dataset(
    graph: KnowledgeGraph,
    *,
    name: str = "graph",
    sizes: SplitSizes | None = None,
    seed: int = 0,
    relations: Vocabulary | None = None,
    where: str = "",
) -> Dataset:
    """Splits a graph's facts by a seed, so that every name still occurs in the training facts.

    Args:
        graph: the graph; its entities without a fact are left out.
        name: the data set's name.
        sizes: how many facts to hold out; by default a tenth each for validation and test.
        seed: decides the split: the same facts in the same order are split the same way.
        relations: a trained model's relations, when the data set must keep to them.
        where: where the facts are from, for messages.

    Raises:
        DataError: there are too few facts to hold any out.
        VocabularyError: a fact has a relation that is not among the model's.
    """
    facts = graph.facts.numpy()
    split_ids = split_by_seed(facts, seed=seed, sizes=sizes, where=where)
    splits = [facts[split_ids == number] for number in SPLIT_IDS.values()]
    dataset = build_dataset(name, splits, graph.entities.names, graph.relations.names)
    return dataset if relations is None else dataset.with_relations(relations)
