"""Data sets in arrays that are mapped into memory: opened at once, whatever their size.

The folder of a data set, and of a run on it, has them in ``mapped/``:

index.json              sizes, relations, what the arrays are of; written last
facts.npy               the facts of train, valid and test, in this order, as ids
entities.*.npy          names end to end, where each begins, their keys and the order of these
train.*.npy             the edges of the training facts in both orders, tails of every relation
all.*.npy               the same of all facts, which answers are made from
search.*.npy            the index that finds names while they are typed
entity_names.txt        readable names, where there are any; relation_names.txt likewise

Ids and offsets that compiled code goes by are checked when a folder is opened, in one pass over
them; all else is looked at where it is needed. ``importing`` writes these files.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knowformer.data.dataset import SPLIT_NAMES, Dataset, Split
from knowformer.data.labels import Labels, read_labels, write_labels
from knowformer.data.name_search import NUM_PIECES, NameSearch, Segment, SegmentArrays
from knowformer.errors import BundleError
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.edge_orders import EdgeLists
from knowformer.graph.fact_index import BY_QUERY, BY_RECEIVER, FactIndex, KeyLayout
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.stored_names import StoredNames, StoredStrings, packed_strings
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.atomic_files import atomic_folder
from knowformer.storage.mapped_arrays import (
    ANY,
    Array,
    check_ids,
    check_offsets,
    link_files,
    open_array,
    write_array,
)
from knowformer.storage.plain_files import read_plain
from knowformer.views.tails import Ranks, Tails, name_ranks

FOLDER = "mapped"
INDEX_FILE = "index.json"
FORMAT_VERSION = 1

# What the arrays of each kind hold, by name.
INDICES = {"by_query": np.int64, "by_pair": np.int64}
LISTS = dict.fromkeys(EdgeLists._fields, np.int32)
TAILS = {"offsets": np.int64, "entities": np.int32, "counts": np.int32, "num_facts": np.int64}
STRINGS = {"text": np.uint8, "offsets": np.int64}
NAMES = {**STRINGS, "keys": np.uint64, "order": np.int64}
SEGMENT: dict[str, npt.DTypeLike] = {
    **dict.fromkeys(SegmentArrays._fields, np.int64),
    "entries_of_word": np.int32,
    "words_of_piece": np.int32,
}


class _Index(BaseModel):
    """index.json."""

    model_config = ConfigDict(strict=True)

    format_version: int = Field(ge=1)
    name: str
    num_facts: dict[str, Annotated[int, Field(ge=0)]]
    """Of each split."""
    relations: list[str]
    fingerprint: str
    """Of the graph of all facts."""


def holds_mapped(folder: Path) -> bool:
    """Returns whether a folder has a mapped data set."""
    return (folder / FOLDER / INDEX_FILE).is_file()


def write_mapped(folder: Path, dataset: Dataset) -> None:
    """Writes a data set into a folder that is being made.

    Args:
        folder: the data set's own, which appears whole or not at all.
        dataset: one whose splits are all predicted from the training facts.
    """
    place, graph = folder / FOLDER, dataset.train.graph
    place.mkdir()
    splits = [dataset.split(name) for name in SPLIT_NAMES]
    write_array(place / "facts.npy", torch.cat([split.facts for split in splits]).numpy())
    ranks = name_ranks(graph.entity_keys)
    _write_edges(place, "train", graph, ranks)
    every = dataset.test.known_graph()
    fingerprint = every.fingerprint
    _write_edges(place, "all", every, ranks)
    _write_names(place, graph.entities)
    search = NameSearch(graph.entities.names, dataset.labels.entities).segment
    _write(place, "search", search.arrays._asdict())
    for name, strings in (("texts", search.texts), ("words", search.words)):
        _write(place, f"search.{name}", dict(zip(STRINGS, packed_strings(strings), strict=True)))
    write_labels(place, dataset.labels)
    index = _Index(
        format_version=FORMAT_VERSION,
        name=dataset.name,
        num_facts={split.name: len(split.facts) for split in splits},
        relations=list(dataset.relations),
        fingerprint=fingerprint,
    )
    (place / INDEX_FILE).write_text(f"{index.model_dump_json(indent=2)}\n", encoding="utf-8")


def link_mapped(source: Path, folder: Path) -> None:
    """Gives another folder the same data set, sharing its files where that is possible.

    Raises:
        StorageError: they cannot be written.
    """
    with atomic_folder(folder / FOLDER, replace=True) as place:
        link_files(source / FOLDER, place)


def open_mapped(folder: Path) -> Dataset:
    """Opens the data set of a folder; nothing is copied into memory.

    Raises:
        BundleError: a file is missing or damaged.
    """
    place = folder / FOLDER
    index = _read_index(place / INDEX_FILE)
    names = StoredNames(**_open(place, "entities", NAMES))
    _check_strings(place, "entities", names)
    for array in (names.keys, names.order):
        _check_size(place, "entities", len(array), len(names))
    entities = Vocabulary.of_stored(names, kind="entity")
    relations = Vocabulary(index.relations, kind="relation")
    _check_size(place, "relations, each of them once,", len(relations), len(index.relations))
    sizes = [index.num_facts[name] for name in SPLIT_NAMES]
    facts = torch.from_numpy(open_array(place / "facts.npy", np.int64, (sum(sizes), 3)))
    check_ids(place / "facts.npy", facts.numpy()[:, ::2], len(names))
    check_ids(place / "facts.npy", facts.numpy()[:, 1], len(relations))
    check_ids(place / "entities.order.npy", names.order, len(names))
    train, valid, test = facts.split(sizes)
    graph, every = (KnowledgeGraph(entities, relations, own) for own in (train, facts))
    graph.adjacency = _open_edges(place, "train", len(names), len(relations))
    every.adjacency = _open_edges(place, "all", len(names), len(relations))
    every.fingerprint = index.fingerprint
    splits = (
        Split(name, graph, own, facts, stored_known=every)
        for name, own in zip(SPLIT_NAMES, (train, valid, test), strict=True)
    )
    return Dataset(index.name, *splits, labels=read_labels(place), folder=folder)


def open_search(dataset: Dataset, labels: Labels) -> NameSearch | None:
    """Opens the search of a data set's names; None: none is stored, or not with these labels."""
    if dataset.folder is None or labels.entities != dataset.labels.entities:
        return None
    place, names = dataset.folder / FOLDER, dataset.train.graph.entities.names
    texts, words = (
        StoredStrings(**_open(place, f"search.{name}", STRINGS)) for name in ("texts", "words")
    )
    _check_strings(place, "search.texts", texts)
    _check_strings(place, "search.words", words)
    arrays = SegmentArrays(**_open(place, "search", SEGMENT))
    _check_segment(place, arrays, len(names), len(texts), len(words))
    return NameSearch.of_segment(Segment(names, texts, words, arrays), labels.entities)


def _check_segment(place: Path, arrays: SegmentArrays, names: int, texts: int, words: int) -> None:
    for found, expected in (
        (len(arrays.owners), texts), (len(arrays.lengths), texts),
        (len(arrays.word_lengths), words), (len(arrays.word_offsets), words + 1),
        (len(arrays.piece_offsets), NUM_PIECES + 1),
    ):  # fmt: skip
        _check_size(place, "search", found, expected)
    for field, number in (("owners", names), ("entries_of_word", texts), ("words_of_piece", words)):
        check_ids(place / f"search.{field}.npy", getattr(arrays, field), number)
    for field, of in (("word_offsets", "entries_of_word"), ("piece_offsets", "words_of_piece")):
        offsets, last = getattr(arrays, field), len(getattr(arrays, of))
        check_offsets(place / f"search.{field}.npy", offsets, last)


def _write_edges(place: Path, name: str, graph: KnowledgeGraph, ranks: Ranks) -> None:
    adjacency = graph.adjacency
    indices = {"by_query": adjacency.by_query.keys, "by_pair": adjacency.by_pair.keys}
    _write(place, name, indices)
    lists = adjacency.build_lists()
    del graph.adjacency, adjacency, indices  # large: the next graph's are made after these
    _write(place, name, lists._asdict())
    _write(place, f"{name}.tails", Tails.of(lists, ranks, len(graph.relations))._asdict())


def _open_edges(place: Path, name: str, num_entities: int, num_relations: int) -> Adjacency:
    """Maps sorted edges; sizes, ids and offsets are checked, since compiled code goes by them."""
    lists = EdgeLists(**_open(place, name, LISTS))
    tails = Tails(**_open(place, f"{name}.tails", TAILS))
    width = num_with_inverses(num_relations)
    sizes = {"num_entities": num_entities, "num_relations": width}
    by_query, by_pair = (
        FactIndex(KeyLayout.fit(order, **sizes), keys)
        for order, keys in zip(
            (BY_QUERY, BY_RECEIVER), _open(place, name, INDICES).values(), strict=True
        )
    )
    edges, messages = len(lists.receiver), len(lists.message_relation)
    for found, expected in (
        (len(by_query), edges), (len(by_pair), edges), (len(lists.sender), edges),
        (len(lists.relation), edges), (len(lists.offsets), num_entities + 1),
        (len(lists.sender_offsets), num_entities + 1), (len(lists.message_offsets), messages + 1),
        (len(tails.entities), messages), (len(tails.counts), messages),
        (len(tails.offsets), width + 1), (len(tails.num_facts), width),
    ):  # fmt: skip
        _check_size(place, name, found, expected)
    for field in ("sender", "receiver"):
        check_ids(place / f"{name}.{field}.npy", getattr(lists, field), num_entities)
    for field in ("relation", "message_relation"):
        check_ids(place / f"{name}.{field}.npy", getattr(lists, field), width)
    check_ids(place / f"{name}.tails.entities.npy", tails.entities, num_entities)
    for field, last in (
        ("offsets", edges),
        ("sender_offsets", messages),
        ("message_offsets", edges),
    ):
        check_offsets(place / f"{name}.{field}.npy", getattr(lists, field), last)
    check_offsets(place / f"{name}.tails.offsets.npy", tails.offsets, messages)
    adjacency = Adjacency.of_sorted(by_query, by_pair, lists, num_relations=num_relations)
    adjacency.memo[Tails] = tails
    return adjacency


def _write_names(place: Path, entities: Vocabulary) -> None:
    text, offsets = packed_strings(entities)
    keys = entities.keys()
    order = np.argsort(keys, kind="stable")
    _write(place, "entities", {"text": text, "offsets": offsets, "keys": keys, "order": order})


def _write(place: Path, prefix: str, arrays: dict[str, Array]) -> None:
    for name, array in arrays.items():
        write_array(place / f"{prefix}.{name}.npy", array)


def _open(place: Path, prefix: str, types: dict[str, Any]) -> dict[str, Array]:
    return {
        name: open_array(place / f"{prefix}.{name}.npy", dtype, (ANY,))
        for name, dtype in types.items()
    }


def _check_strings(place: Path, name: str, strings: StoredStrings) -> None:
    check_offsets(place / f"{name}.offsets.npy", strings.offsets, len(strings.text))


def _check_size(place: Path, name: str, found: int, expected: int) -> None:
    if found != expected:
        raise BundleError(
            f"Expected {expected:,} numbers in an array of {name} in {place}, found {found:,}. "
            "Copy the folder again, or import anew."
        )


def _read_index(path: Path) -> _Index:
    try:
        index = _Index.model_validate_json(read_plain(path))
    except OSError as error:
        raise BundleError(f"Expected a readable file at {path}, got '{error.strerror}'.") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BundleError(
            f"Expected an index of arrays in {path}, got: {first['msg']}. Copy the folder again, "
            "or import anew."
        ) from None
    if index.format_version > FORMAT_VERSION:
        raise BundleError(
            f"Expected format {FORMAT_VERSION} or older in {path}, got {index.format_version}. "
            "Update knowformer."
        )
    if set(index.num_facts) != set(SPLIT_NAMES):
        raise BundleError(f"Expected the facts of {', '.join(SPLIT_NAMES)} in {path}, got others.")
    return index
