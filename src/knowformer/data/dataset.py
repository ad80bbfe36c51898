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
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.data import catalog
from knowformer.data.labels import Labels, read_labels
from knowformer.data.splitting import TEST, TRAIN, VALID, split_by_seed
from knowformer.errors import DataError, suggest
from knowformer.graph.knowledge_graph import KnowledgeGraph, number_facts
from knowformer.graph.vocabulary import Vocabulary
from knowformer.seeding import generator
from knowformer.storage.triples_io import NamedTriple, read_edges, read_triples

SplitName = Literal["train", "valid", "test"]
GraphSource = str | Path | KnowledgeGraph
"""A path, a name of the catalogue, or a graph."""

HOMOGENEOUS_RELATION = "linked_to"


@dataclass(frozen=True)
class Split:
    """Facts to be predicted, the graph to predict them from, and what is known to be true."""

    name: SplitName
    graph: KnowledgeGraph
    facts: Int[Tensor, "N 3"]
    known: Int[Tensor, "K 3"]  # removed from the candidates when ranking (filtered setting)


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


def load_dataset(
    source: str | Path, *, seed: int = 0, relations: Vocabulary | None = None
) -> Dataset:
    """Loads a data set from a folder, a triples file or a catalogue name.

    Args:
        source: an existing path, else a name of the catalogue.
        seed: decides the split of a source that has none of its own.
        relations: a trained model's relations, when the data set must keep to them.

    Raises:
        DataError: there is no such path or name, or its files are not as expected.
    """
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
    path = _resolve(source)
    if path.is_dir() and not _is_split(path) and (path / "train.txt").is_file():
        path = path / "train.txt"
    if path.is_file():
        return KnowledgeGraph.from_triples(_read_part(path, relations), relations=relations)
    split = _from_folder(path, 0, relations).test
    return KnowledgeGraph(split.graph.entities, relations, split.known)


def load_labels(source: GraphSource) -> Labels:
    """Loads the readable names that a source has; a single file has none, nor has a graph."""
    if isinstance(source, KnowledgeGraph):
        return Labels()
    path = _resolve(source)
    return read_labels(path) if path.is_dir() else Labels()


def catalogue_name(source: str | Path) -> str | None:
    """Returns the source if it is a name of the catalogue, and not a path that exists."""
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
            f"{hint} `knowformer datasets` lists the catalogue."
        )
    return catalog.fetch(catalog.find(str(source)))


def _is_split(folder: Path) -> bool:
    return any((folder / f"{part}.txt").is_file() for part in ("valid", "test"))


def _from_folder(folder: Path, seed: int, relations: Vocabulary | None) -> Dataset:
    name = folder.resolve().name
    if (folder / "edges.txt").is_file():
        return _from_edges(folder / "edges.txt", seed, relations)
    train = read_triples(folder / "train.txt")
    if not _is_split(folder):
        return _from_single_file(folder / "train.txt", train, seed, relations)
    relations = _relations_of(folder / "train.txt", train, relations)
    valid = _read_part(folder / "valid.txt", relations)
    beside = folder.resolve().with_name(f"{name}_ind")  # "." alone has no name
    if beside.is_dir():
        parts = [
            _read_part(beside / f"{part}.txt", relations) for part in ("train", "valid", "test")
        ]
        return _on_graph_of_test(name, train, valid, parts, relations)
    test = _read_part(folder / "test.txt", relations)
    if (folder / "msg.txt").is_file():
        message = _read_part(folder / "msg.txt", relations)
        unseen = _transductive(name, message, valid, test, relations)
        seen = KnowledgeGraph.from_triples(train, relations=relations)
        return replace(unseen, train=Split("train", seen, seen.facts, seen.facts))
    return _transductive(name, train, valid, test, relations)


def _relations_of(
    path: Path, triples: list[NamedTriple], relations: Vocabulary | None
) -> Vocabulary:
    """Returns the relations of the training facts, or the model's, which must cover them."""
    if relations is None:
        return Vocabulary((relation for _, relation, _ in triples), kind="relation")
    _check_relations(path, triples, relations)
    return relations


def _read_part(path: Path, relations: Vocabulary) -> list[NamedTriple]:
    triples = read_triples(path)
    _check_relations(path, triples, relations)
    return triples


def _check_relations(path: Path, triples: list[NamedTriple], relations: Vocabulary) -> None:
    """A relation outside the training facts cannot be answered: name it and where it stands."""
    for number, (_, relation, _) in enumerate(triples, start=1):
        if relation not in relations:
            raise DataError(
                f"Expected relations that occur in the training facts, got {relation!r} in triple "
                f"{number} of {path}.{relations.hint(relation)}"
            )


def _transductive(
    name: str,
    train: list[NamedTriple],
    valid: list[NamedTriple],
    test: list[NamedTriple],
    relations: Vocabulary,
) -> Dataset:
    graph = KnowledgeGraph.from_triples(
        train, relations=relations, more_entities=_entity_names([*valid, *test])
    )
    valid_facts = number_facts(valid, graph.entities, relations)
    test_facts = number_facts(test, graph.entities, relations)
    known = torch.cat([graph.facts, valid_facts, test_facts])
    return Dataset(
        name,
        train=Split("train", graph, graph.facts, known),
        valid=Split("valid", graph, valid_facts, known),
        test=Split("test", graph, test_facts, known),
    )


def _on_graph_of_test(
    name: str,
    train: list[NamedTriple],
    valid: list[NamedTriple],
    test_parts: Sequence[list[NamedTriple]],
    relations: Vocabulary,
) -> Dataset:
    """Inductive: validation on the training graph, test on a graph with entities of its own."""
    seen = KnowledgeGraph.from_triples(
        train, relations=relations, more_entities=_entity_names(valid)
    )
    valid_facts = number_facts(valid, seen.entities, relations)
    known = torch.cat([seen.facts, valid_facts])
    test_facts, test_valid, asked = test_parts
    return Dataset(
        name,
        train=Split("train", seen, seen.facts, known),
        valid=Split("valid", seen, valid_facts, known),
        test=_transductive(name, test_facts, test_valid, asked, relations).test,
    )


def _from_single_file(
    path: Path,
    triples: list[NamedTriple],
    seed: int,
    relations: Vocabulary | None,
) -> Dataset:
    """Splits by a seed, as an import does: the same files and seed give the same data set."""
    triples = list(dict.fromkeys(triples))
    facts = KnowledgeGraph.from_triples(triples).facts.numpy()
    parts = split_by_seed(facts, seed=seed, where=f" in {path}").tolist()
    train, valid, test = (
        [triple for triple, its_part in zip(triples, parts, strict=True) if its_part == part]
        for part in (TRAIN, VALID, TEST)
    )
    name = path.parent.resolve().name if path.stem == "train" else path.stem
    return _transductive(name, train, valid, test, _relations_of(path, train, relations))


def _from_edges(path: Path, seed: int, relations: Vocabulary | None) -> Dataset:
    """Splits edges as NBFNet does: 85/5/10, uniformly at random, whatever becomes of their nodes.

    An edge has no direction, a fact has one. It is drawn: the order in which a file names two nodes
    may follow something else, which a model would find in the graph and use.
    """
    edges = list(dict.fromkeys(read_edges(path, HOMOGENEOUS_RELATION)))
    random = generator(seed, "split")
    order: list[int] = torch.randperm(len(edges), generator=random).tolist()
    swap: list[bool] = (torch.rand(len(edges), generator=random) < 0.5).tolist()
    facts = [
        (t, r, h) if swapped else (h, r, t) for (h, r, t), swapped in zip(edges, swap, strict=True)
    ]
    drawn = [facts[number] for number in order]
    num_train, num_valid = int(0.85 * len(drawn)), int(0.05 * len(drawn))
    valid, test = drawn[num_train : num_train + num_valid], drawn[num_train + num_valid :]
    if not valid:
        raise DataError(f"Expected at least 20 edges to split 85/5/10, got {len(drawn)} in {path}.")
    train = drawn[:num_train]
    name = path.parent.resolve().name
    return _transductive(name, train, valid, test, _relations_of(path, train, relations))


def _entity_names(triples: list[NamedTriple]) -> list[str]:
    return [name for head, _, tail in triples for name in (head, tail)]
