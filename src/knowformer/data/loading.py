"""Data sets from files: a path, a name of the catalogue or an object in, a Dataset out.

folder with train, valid, test          one graph; valid and test are predicted from train
folder NAME beside NAME_ind             valid on NAME's graph, test on NAME_ind's
folder with train, msg, valid, test     valid and test are predicted from msg, whose entities and
                                        relations may all be new
file, or folder with train alone        split by a seed
folder with edges.txt                   one kind of edge, no direction, split 85/5/10 by a seed
folder with mapped/                     arrays of a large graph, which stay where they are
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from knowformer.data import catalog
from knowformer.data.dataset import (
    HOMOGENEOUS_RELATION,
    SPLIT_NAMES,
    Dataset,
    GraphSource,
    Split,
    build_dataset,
    make_dataset,
)
from knowformer.data.labels import Labels, read_labels
from knowformer.data.mapped_dataset import FOLDER, holds_mapped, open_mapped
from knowformer.data.splitting import split_edges
from knowformer.data.trained_relations import (
    check_relations,
    read_facts,
    read_held_out,
    relations_of,
)
from knowformer.errors import DataError, suggest
from knowformer.graph.knowledge_graph import KnowledgeGraph, number_facts
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple, read_edges, read_triples


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
    if holds_mapped(path):
        return load_dataset(open_mapped(path), relations=relations)
    return replace(_from_folder(path, seed, relations), labels=read_labels(path))


def load_graph(source: GraphSource, relations: Vocabulary | None = None) -> KnowledgeGraph:
    """Loads all facts of a source as one graph.

    Args:
        source: as of ``load_dataset``.
        relations: a trained model's, when the graph must keep to them.

    Raises:
        DataError: the files are not as expected, or have a relation that the model does not know.
        VocabularyError: a graph has such a relation.
    """
    if isinstance(source, KnowledgeGraph):
        return source if relations is None else source.with_relations(relations)
    if isinstance(source, Dataset):
        return load_dataset(source, relations=relations).test.known_graph()
    path = _resolve(source)
    if holds_mapped(path):
        return load_graph(open_mapped(path).test.known_graph(), relations)
    if path.is_dir() and not _is_split(path) and (path / "train.txt").is_file():
        path = path / "train.txt"
    if path.is_file():
        facts = read_triples(path) if relations is None else read_facts(path, relations)
        return KnowledgeGraph.from_triples(facts, relations=relations)
    return _from_folder(path, 0, relations).test.known_graph()


def load_labels(source: GraphSource) -> Labels:
    """Loads the readable names that a source has; a single file has none, nor has a graph."""
    if isinstance(source, KnowledgeGraph):
        return Labels()
    if isinstance(source, Dataset):
        return source.labels
    path = _resolve(source)
    return read_labels(path / FOLDER if holds_mapped(path) else path) if path.is_dir() else Labels()


def catalogue_name(source: GraphSource) -> str | None:
    """Returns the source if it is a name of the catalogue, and not a path that exists."""
    if not isinstance(source, str | Path):
        return None
    name = str(source)
    return name if name in catalog.entries() and not Path(name).exists() else None


def is_graph(source: str | Path) -> bool:
    """Returns whether there are facts to load: in a file, in a folder, or by a catalogue name."""
    path = Path(source)
    try:
        if path.is_dir():
            has_text = any((path / name).is_file() for name in ("train.txt", "edges.txt"))
            return has_text or holds_mapped(path)
        return path.is_file() or catalogue_name(source) is not None
    except OSError:  # forbidden, or a name that cannot be
        return False


def _resolve(source: str | Path) -> Path:
    """Returns an existing file or folder; a catalogue name is fetched if need be."""
    path = Path(source)
    try:
        if path.is_file() or path.is_dir():
            return path
        if path.exists():
            raise DataError(f"Expected a file or a folder at {path}, found a pipe or a device.")
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
    name = folder.resolve().name
    if (folder / "edges.txt").is_file():
        return _from_edges(folder / "edges.txt", seed, relations)
    train = read_triples(folder / "train.txt")
    if not _is_split(folder):
        return _from_single_file(folder / "train.txt", train, seed, relations)
    read = read_held_out if relations is None else read_facts  # a model's must cover them all
    message = read_triples(folder / "msg.txt") if (folder / "msg.txt").is_file() else []
    if relations is None:
        relations = relations_of(folder / "train.txt", [*train, *message], None)
    check_relations(folder / "train.txt", train, relations)
    valid = read(folder / "valid.txt", relations)
    beside = folder.resolve().with_name(f"{name}_ind")  # "." alone has no name
    if beside.is_dir():
        others = (read_facts(beside / f"{split}.txt", relations) for split in SPLIT_NAMES)
        unseen = _on_one_graph(name, relations, *others)
        return replace(_on_one_graph(name, relations, train, valid, []), test=unseen.test)
    test = read(folder / "test.txt", relations)
    if message:
        check_relations(folder / "msg.txt", message, relations)
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
    name = path.parent.resolve().name if path.stem == "train" else path.stem
    return make_dataset(graph, name=name, seed=seed, relations=relations, where=f" in {path}")


def _from_edges(path: Path, seed: int, relations: Vocabulary | None) -> Dataset:
    edges = list(dict.fromkeys(read_edges(path, HOMOGENEOUS_RELATION)))
    splits = split_edges(edges, seed=seed, where=f" in {path}")
    relations = relations_of(path, splits[0], relations)
    return _on_one_graph(path.parent.resolve().name, relations, *splits)
