"""Mapped data sets: the same as those in memory, shared with runs, refused where damaged."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from knowformer.data.dataset import Dataset, make_dataset
from knowformer.data.labels import Labels
from knowformer.data.loading import is_graph, load_dataset, load_graph
from knowformer.data.mapped_dataset import (
    holds_mapped,
    link_mapped,
    open_mapped,
    open_search,
    write_mapped,
)
from knowformer.data.name_search import NameSearch
from knowformer.errors import BundleError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.known_answers import KnownAnswers
from knowformer.views.extractor import extractor_of
from knowformer.views.settings import ViewSettings

GraphBuilder = Callable[..., KnowledgeGraph]


@pytest.fixture
def dataset(random_graph: GraphBuilder) -> Dataset:
    return make_dataset(random_graph(3, num_entities=30, num_facts=150), name="small")


@pytest.fixture
def folder(tmp_path: Path, dataset: Dataset) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_mapped(folder, dataset)
    return folder


def test_what_is_opened_is_what_was_written(folder: Path, dataset: Dataset) -> None:
    opened = load_dataset(folder)
    assert holds_mapped(folder)
    assert is_graph(folder)
    assert opened.name == "small"
    assert opened.same_as(dataset)
    for name in ("train", "valid", "test"):
        assert torch.equal(opened.split(name).known, dataset.split(name).known)
    own, other = opened.for_training().valid, dataset.for_training().valid
    assert torch.equal(own.known, other.known)
    assert np.array_equal(KnownAnswers.of_split(own).keys, KnownAnswers.of_split(other).keys)
    assert load_graph(folder).fingerprint == dataset.test.known_graph().fingerprint


def test_edges_and_views_are_those_of_the_graph_in_memory(folder: Path, dataset: Dataset) -> None:
    opened = open_mapped(folder)
    pairs = (
        (opened.train.graph, dataset.train.graph),
        (opened.test.known_graph(), dataset.test.known_graph()),
    )
    for mapped, built in pairs:
        for mine, other in zip(mapped.adjacency.lists, built.adjacency.lists, strict=True):
            assert mine.dtype == other.dtype
            assert np.array_equal(mine, other)
        assert np.array_equal(mapped.adjacency.by_pair.keys, built.adjacency.by_pair.keys)
        settings = ViewSettings(size=7)
        heads, relations, _ = dataset.test.facts.unbind(1)
        mine, other = (
            extractor_of(graph.adjacency, graph.entity_keys, settings).extract(
                heads, relations, outside=True
            )
            for graph in (mapped, built)
        )
        assert torch.equal(mine.entities, other.entities)
        assert torch.equal(mine.view.edges.sender, other.view.edges.sender)
        assert mine.outside is not None
        assert other.outside is not None
        assert torch.equal(mine.outside.scores, other.outside.scores)


def test_a_mapped_graph_grows_like_another(folder: Path, dataset: Dataset) -> None:
    relation = dataset.relations.names[0]
    changes = [("someone new", relation, dataset.train.graph.entities.names[0])]
    mapped, built = (
        each.test.known_graph().with_facts(changes) for each in (open_mapped(folder), dataset)
    )
    assert mapped.entities == built.entities
    assert mapped.entities.names[-1] == "someone new"
    assert mapped.fingerprint == built.fingerprint
    assert torch.equal(mapped.adjacency.edges.message, built.adjacency.edges.message)


def test_names_are_found_in_the_stored_index(folder: Path, dataset: Dataset) -> None:
    names = dataset.train.graph.entities.names
    stored = open_search(open_mapped(folder), Labels())
    assert stored is not None
    built = NameSearch(names)
    for typed in ("", names[0], names[5][:2], names[7] + "x", "nothing like it"):
        assert stored.search(typed) == built.search(typed)
    assert open_search(open_mapped(folder), Labels({names[0]: "other"})) is None
    assert open_search(dataset, Labels()) is None


def test_another_folder_shares_the_files(folder: Path, dataset: Dataset, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    link_mapped(folder, run)
    assert open_mapped(run).same_as(dataset)
    first, second = ((place / "mapped" / "facts.npy").stat() for place in (folder, run))
    assert first.st_ino == second.st_ino


@pytest.mark.parametrize("name", ["train.sender.npy", "entities.keys.npy", "index.json"])
def test_a_file_that_is_cut_off_is_refused(folder: Path, name: str) -> None:
    path = folder / "mapped" / name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BundleError, match=name):
        open_mapped(folder)


def test_arrays_that_do_not_fit_each_other_are_refused(folder: Path) -> None:
    path = folder / "mapped" / "all.sender.npy"
    np.save(path, np.load(path)[:-1])
    with pytest.raises(BundleError, match="of all in"):
        open_mapped(folder)
    path.unlink()
    with pytest.raises(BundleError, match=r"all\.sender\.npy"):
        open_mapped(folder)


@pytest.mark.parametrize(
    "name",
    [
        "facts", "entities.order", "train.sender", "train.receiver", "train.relation",
        "train.message_relation", "all.sender", "all.tails.entities",
    ],
)  # fmt: skip
@pytest.mark.parametrize("wrong", [-1, 2**20])
def test_an_id_out_of_range_is_refused(folder: Path, name: str, wrong: int) -> None:
    path = folder / "mapped" / f"{name}.npy"
    ids = np.load(path)
    ids[len(ids) // 2] = wrong
    np.save(path, ids)
    with pytest.raises(BundleError, match=rf"Expected ids from 0 to \d+ in .*{name}\.npy"):
        open_mapped(folder)


@pytest.mark.parametrize("name", ["train.offsets", "all.message_offsets", "train.tails.offsets"])
def test_offsets_that_fall_are_refused(folder: Path, name: str) -> None:
    path = folder / "mapped" / f"{name}.npy"
    offsets = np.load(path)
    offsets[1] = offsets[-1] + 1
    np.save(path, offsets)
    with pytest.raises(BundleError, match=rf"Expected offsets that rise from 0 to .*{name}\.npy"):
        open_mapped(folder)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("owners", -1), ("entries_of_word", 2**20), ("word_offsets", 2**20), ("words_of_piece", -1)],
)
def test_a_stored_search_is_checked(folder: Path, name: str, wrong: int) -> None:
    path = folder / "mapped" / f"search.{name}.npy"
    numbers = np.load(path)
    numbers[len(numbers) // 2] = wrong
    np.save(path, numbers)
    with pytest.raises(BundleError, match=rf"search\.{name}\.npy"):
        open_search(open_mapped(folder), Labels())


def test_what_is_no_array_or_no_index_is_refused(folder: Path) -> None:
    place = folder / "mapped"
    index = place / "index.json"
    content = json.loads(index.read_text("utf-8"))
    for wrong in (
        {"relations": [*content["relations"], content["relations"][0]]},
        {"num_facts": content["num_facts"] | {"valid": -1}},
    ):
        index.write_text(json.dumps(content | wrong), "utf-8")
        with pytest.raises(BundleError, match=r"each of them once|greater than or equal to 0"):
            open_mapped(folder)
    index.write_text(json.dumps(content), "utf-8")
    (place / "facts.npy").write_bytes(b"PK\x03\x04" + bytes(500))  # numpy would unpack it
    with pytest.raises(BundleError, match=r"Expected a whole array in .*facts\.npy"):
        open_mapped(folder)


def test_kernels_go_by_lists_that_were_checked(folder: Path, dataset: Dataset) -> None:
    path = folder / "mapped" / "train.by_query.npy"
    np.save(path, np.load(path) | np.int64(2**62))  # ids far out of range
    edges = open_mapped(folder).train.graph.adjacency.edges
    assert torch.equal(edges.receiver, dataset.train.graph.adjacency.edges.receiver)
