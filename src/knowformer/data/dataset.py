"""Dataset: train, valid and test, each with its own fact graph.

Transductive, inductive and single-file data are one thing here: a split is a list of facts to be
predicted, the graph whose facts may be used for it, and the facts known to be true (the filter).

    folder with train, valid, test          one graph; valid and test are predicted from train
    folder NAME beside NAME_ind             valid on NAME's graph, test on NAME_ind's
    folder with train, msg, valid, test     valid and test are predicted from msg
    file, or folder with train alone        split by a seed
    folder with edges.txt                   one kind of edge, no direction, split 85/5/10 by a seed
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.choices import SplitName
from knowformer.data import catalog
from knowformer.data.labels import Labels, read_labels
from knowformer.data.splitting import SPLIT_IDS, SplitSizes, split_by_seed, split_edges
from knowformer.data.trained_relations import (
    check_relations,
    read_facts,
    read_held_out,
    relations_of,
)
from knowformer.errors import DataError, printable, suggest
from knowformer.graph.fact_index import Ids
from knowformer.graph.knowledge_graph import KnowledgeGraph, number_facts, renumber_relations
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple, read_edges, read_triples

SPLIT_NAMES: tuple[SplitName, ...] = ("train", "valid", "test")
HOMOGENEOUS_RELATION = "linked_to"


@dataclass(frozen=True)
class Split:
    """Facts to be predicted, the graph to predict them from, and what is known to be true."""

    name: SplitName
    graph: KnowledgeGraph
    facts: Int[Tensor, "N 3"]
    known: Int[Tensor, "K 3"]  # removed from the candidates when ranking (filtered setting)

    def known_graph(self) -> KnowledgeGraph:
        """Returns the graph of all facts known to be true."""
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
        visible = torch.cat([self.valid.graph.facts, self.valid.facts])
        return TrainingSplits(
            train=replace(self.train, known=self.train.facts),
            valid=replace(self.valid, known=visible),
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
    distinct, first = np.unique(used, return_index=True)
    old: list[int] = distinct[np.argsort(first)].tolist()
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


def load_dataset(
    source: GraphSource, *, seed: int = 0, relations: Vocabulary | None = None
) -> Dataset:
    """Loads a data set from a folder, a triples file or a catalogue name.

    Args:
        source: an existing path, else a name of the catalogue; or a graph, or a data set, which is
            returned as it is.
        seed: decides the split of a source that has none of its own.
        relations: a trained model's relations, when the data set must keep to them.

    Raises:
        DataError: there is no such path or name, or its files are not as expected.
        VocabularyError: a graph or a data set has a relation that is not among the model's.
    """
    if isinstance(source, KnowledgeGraph):
        return make_dataset(source, seed=seed, relations=relations)
    if isinstance(source, Dataset):
        return source if relations is None else source.with_relations(relations)
    path = _resolve(source)
    if path.is_file():
        return _from_single_file(path, read_triples(path), seed, relations)
    return replace(_from_folder(path, seed, relations), labels=read_labels(path))


def load_graph(source: GraphSource, relations: Vocabulary) -> KnowledgeGraph:
    """Loads all facts of a source as one graph over a trained model's relations.

    Raises:
        DataError: the files are not as expected, or have a relation that the model does not know.
        VocabularyError: a graph has such a relation.
    """
    if isinstance(source, KnowledgeGraph):
        return source.with_relations(relations)
    if isinstance(source, Dataset):
        return source.with_relations(relations).test.known_graph()
    path = _resolve(source)
    if path.is_dir() and not _is_split(path) and (path / "train.txt").is_file():
        path = path / "train.txt"
    if path.is_file():
        return KnowledgeGraph.from_triples(read_facts(path, relations), relations=relations)
    return _from_folder(path, 0, relations).test.known_graph()


def load_labels(source: GraphSource) -> Labels:
    """Loads the readable names that a source has; a single file has none, nor has a graph."""
    if isinstance(source, KnowledgeGraph):
        return Labels()
    if isinstance(source, Dataset):
        return source.labels
    path = _resolve(source)
    return read_labels(path) if path.is_dir() else Labels()


def catalogue_name(source: GraphSource) -> str | None:
    """Returns the source if it is a name of the catalogue, and not a path that exists."""
    if not isinstance(source, str | Path):
        return None
    name = str(source)
    return name if name in catalog.entries() and not Path(name).exists() else None


def _resolve(source: str | Path) -> Path:
    """Returns an existing file or folder; a catalogue name is fetched if need be."""
    path = Path(source)
    try:
        if path.is_file() or path.is_dir():
            return path
    except OSError as error:  # forbidden, or a name that cannot be
        raise DataError(
            f"Expected a readable file or folder at {path}, got '{error.strerror}'."
        ) from error
    known = catalog.entries()
    if str(source) not in known:
        hint = "" if len(path.parts) != 1 or path.suffix else suggest(str(source), known)
        raise DataError(
            f"Expected a folder, a triples file or a catalogue name, found nothing at {path}."
            f"{hint} `catalog.entries()` lists the catalogue."
        )
    return catalog.fetch(catalog.find(str(source)))


def _is_split(folder: Path) -> bool:
    return any((folder / f"{split}.txt").is_file() for split in ("valid", "test"))


def _from_folder(folder: Path, seed: int, relations: Vocabulary | None) -> Dataset:
    name = printable(folder.resolve().name)
    if (folder / "edges.txt").is_file():
        return _from_edges(folder / "edges.txt", seed, relations)
    train = read_triples(folder / "train.txt")
    if not _is_split(folder):
        return _from_single_file(folder / "train.txt", train, seed, relations)
    read = read_held_out if relations is None else read_facts  # a model's must cover them all
    relations = relations_of(folder / "train.txt", train, relations)
    valid = read(folder / "valid.txt", relations)
    beside = folder.resolve().with_name(f"{name}_ind")  # "." alone has no name
    if beside.is_dir():
        others = (read_facts(beside / f"{split}.txt", relations) for split in SPLIT_NAMES)
        unseen = _on_one_graph(name, relations, *others)
        return replace(_on_one_graph(name, relations, train, valid, []), test=unseen.test)
    test = read(folder / "test.txt", relations)
    if (folder / "msg.txt").is_file():
        message = read_facts(folder / "msg.txt", relations)
        unseen = _on_one_graph(name, relations, message, valid, test)
        seen = KnowledgeGraph.from_triples(train, relations=relations)
        return replace(unseen, train=Split("train", seen, seen.facts, seen.facts))
    return _on_one_graph(name, relations, train, valid, test)


def _on_one_graph(name: str, relations: Vocabulary, *splits: Sequence[NamedTriple]) -> Dataset:
    names = (name for split in splits for head, _, tail in split for name in (head, tail))
    entities = Vocabulary(names, kind="entity")
    facts = [number_facts(split, entities, relations).numpy() for split in splits]
    return build_dataset(name, facts, entities.names, relations)


def _from_single_file(
    path: Path,
    triples: list[NamedTriple],
    seed: int,
    relations: Vocabulary | None,
) -> Dataset:
    """Splits by a seed, as an import does: the same files and seed give the same data set."""
    if relations is not None:
        check_relations(path, triples, relations)  # names the triple
    graph = KnowledgeGraph.from_triples(triples)
    name = printable(path.parent.resolve().name if path.stem == "train" else path.stem)
    return make_dataset(graph, name=name, seed=seed, relations=relations, where=f" in {path}")


def _from_edges(path: Path, seed: int, relations: Vocabulary | None) -> Dataset:
    edges = list(dict.fromkeys(read_edges(path, HOMOGENEOUS_RELATION)))
    splits = split_edges(edges, seed=seed, where=f" in {path}")
    relations = relations_of(path, splits[0], relations)
    return _on_one_graph(printable(path.parent.resolve().name), relations, *splits)
