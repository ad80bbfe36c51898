import os
import re
from pathlib import Path

import pytest

from knowformer.data.dataset import HOMOGENEOUS_RELATION, Dataset, Split
from knowformer.data.loading import catalogue_name, load_dataset, load_graph
from knowformer.errors import DataError
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple
from tests.unit.data.conftest import (
    MESSAGES,
    OTHER_TEST,
    OTHER_VALID,
    TEST,
    TRAIN,
    VALID,
    Writer,
    many_triples,
    named,
)


def test_a_transductive_folder_predicts_valid_and_test_from_train(transductive: Path) -> None:
    dataset = load_dataset(transductive)
    assert dataset.name == "graph"
    assert not dataset.is_inductive
    for split, facts in ((dataset.train, TRAIN), (dataset.valid, VALID), (dataset.test, TEST)):
        assert named(split, split.facts) == facts
        assert named(split, split.graph.facts) == TRAIN
        assert named(split, split.known) == TRAIN + VALID + TEST
        assert set(split.graph.entities) == {"a", "b", "c", "d", "new"}
    assert list(dataset.relations) == ["r", "s"]


def test_an_inductive_folder_tests_on_the_graph_beside_it(inductive: Path) -> None:
    dataset = load_dataset(inductive)
    assert dataset.is_inductive
    assert named(dataset.valid, dataset.valid.facts) == VALID
    assert named(dataset.valid, dataset.valid.graph.facts) == TRAIN
    assert named(dataset.valid, dataset.valid.known) == TRAIN + VALID
    assert set(dataset.valid.graph.entities) == {"a", "b", "c", "d"}
    test = dataset.test
    assert named(test, test.facts) == OTHER_TEST
    assert named(test, test.graph.facts) == MESSAGES
    assert named(test, test.known) == MESSAGES + OTHER_VALID + OTHER_TEST
    assert set(test.graph.entities) == {"x", "y", "z", "newer"}
    assert test.graph.relations == dataset.relations


def test_a_folder_with_messages_predicts_from_them(fully_inductive: Path) -> None:
    dataset = load_dataset(fully_inductive)
    assert dataset.is_inductive
    assert named(dataset.train, dataset.train.facts) == TRAIN
    assert named(dataset.train, dataset.train.graph.facts) == TRAIN
    for split, facts in ((dataset.valid, OTHER_VALID), (dataset.test, OTHER_TEST)):
        assert named(split, split.facts) == facts
        assert named(split, split.graph.facts) == MESSAGES
        assert named(split, split.known) == MESSAGES + OTHER_VALID + OTHER_TEST
        assert set(split.graph.entities) == {"x", "y", "z", "newer"}


def test_the_folder_one_stands_in_is_loaded_like_any_other(
    inductive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inductive)
    dataset = load_dataset(".")
    assert dataset.name == "graph"
    assert named(dataset.test, dataset.test.facts) == OTHER_TEST


def all_facts(dataset: Dataset) -> list[list[NamedTriple]]:
    return [named(split, split.facts) for split in (dataset.train, dataset.valid, dataset.test)]


def test_a_single_file_is_split_by_the_seed_alone(tmp_path: Path, write_triples: Writer) -> None:
    path = write_triples(tmp_path / "mine.tsv", many_triples())
    dataset = load_dataset(path, seed=3)
    assert dataset.name == "mine"
    assert all_facts(load_dataset(path, seed=3)) == all_facts(dataset)
    assert all_facts(load_dataset(path, seed=4)) != all_facts(dataset)


@pytest.mark.parametrize("seed", range(5))
def test_a_single_files_splits_are_disjoint_and_held_out_names_stay_in_train(
    tmp_path: Path, write_triples: Writer, seed: int
) -> None:
    triples = many_triples()
    path = write_triples(tmp_path / "mine.tsv", triples + triples[:9])
    train, valid, test = all_facts(load_dataset(path, seed=seed))
    assert sorted(train + valid + test) == sorted(triples)
    assert len(valid) == len(test) == 6
    entities = {name for head, _, tail in train for name in (head, tail)}
    relations = {relation for _, relation, _ in train}
    for head, relation, tail in valid + test:
        assert {head, tail} <= entities
        assert relation in relations
    assert ("once", "seldom", "never again") in train


def test_a_folder_with_train_alone_is_split_and_named_by_the_folder(
    tmp_path: Path, write_triples: Writer
) -> None:
    write_triples(tmp_path / "alone" / "train.txt", many_triples())
    dataset = load_dataset(tmp_path / "alone")
    assert dataset.name == "alone"
    assert [len(facts) for facts in all_facts(dataset)] == [48, 6, 6]


def test_too_few_facts_to_split_are_refused(tmp_path: Path, write_triples: Writer) -> None:
    path = write_triples(tmp_path / "few.tsv", TRAIN)
    with pytest.raises(DataError, match=re.escape(f"got 4 in {path}")):
        load_dataset(path)


def test_edges_are_one_relation_split_85_5_10(tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    pairs = [f"{u}\t{(u + step) % 20}\n" for u in range(20) for step in (1, 2, 3, 5, 7)]
    (folder / "edges.txt").write_text("".join(pairs))
    dataset = load_dataset(folder)
    assert dataset.name == "links"
    assert list(dataset.relations) == [HOMOGENEOUS_RELATION]
    assert [len(facts) for facts in all_facts(dataset)] == [85, 5, 10]


def test_edges_lose_the_order_of_their_file_and_keep_every_node(tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    pairs = {(u, v) for u in range(12) for v in range(u + 1, 12)} | {(0, 99)}
    (folder / "edges.txt").write_text("".join(f"{u}\t{v}\n" for u, v in sorted(pairs)))
    dataset = load_dataset(folder)
    found = [(int(h), int(t)) for part in all_facts(dataset) for h, _, t in part]
    assert {(min(pair), max(pair)) for pair in found} == pairs
    upwards = sum(u < v for u, v in found)
    assert 0.25 * len(found) < upwards < 0.75 * len(found)
    assert load_dataset(folder, seed=0).same_as(dataset)
    assert not load_dataset(folder, seed=1).same_as(dataset)
    # A split at random may leave a node without an edge; it is a candidate all the same.
    assert all("99" in load_dataset(folder, seed=s).train.graph.entities for s in range(8))


def test_few_edges_are_refused(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("a\tb\nb\tc\n")
    with pytest.raises(DataError, match="at least 20 edges"):
        load_dataset(tmp_path)


def test_a_catalogue_name_is_told_from_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert catalogue_name("wn18rr_v1") == "wn18rr_v1"
    assert catalogue_name("unheard_of") is None
    (tmp_path / "wn18rr_v1").mkdir()
    assert catalogue_name("wn18rr_v1") is None


@pytest.mark.parametrize("part", ["valid", "test"])
def test_held_out_facts_of_unknown_relations_are_left_out_unless_none_would_be_left(
    transductive: Path, write_triples: Writer, part: str
) -> None:
    path = write_triples(transductive / f"{part}.txt", [("a", "r", "b"), ("a", "rr", "c")])
    assert len(load_dataset(transductive).split(part).facts) == 1
    relations = Vocabulary(["s", "r"], kind="relation")  # a model's: nothing is left out
    with pytest.raises(DataError, match=rf"'rr' .*triple 2 of {re.escape(str(path))}"):
        load_dataset(transductive, relations=relations)
    write_triples(path, [("a", "rr", "c")])
    with pytest.raises(DataError, match=rf"'rr' .*triple 1 of {re.escape(str(path))}"):
        load_dataset(transductive)


def test_a_models_relations_must_cover_the_training_facts(transductive: Path) -> None:
    relations = Vocabulary(["s", "more", "r"], kind="relation")
    assert load_dataset(transductive, relations=relations).relations == relations
    with pytest.raises(DataError, match=r"'s' .*train\.txt"):
        load_dataset(transductive, relations=Vocabulary(["r"], kind="relation"))


def test_a_missing_part_is_named(transductive: Path) -> None:
    (transductive / "test.txt").unlink()
    with pytest.raises(DataError, match=re.escape(str(transductive / "test.txt"))):
        load_dataset(transductive)


def test_nothing_at_a_path_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found nothing at"):
        load_dataset(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="found a pipe"):
        load_dataset(tmp_path / "pipe")


def test_a_graph_to_answer_on_has_every_fact_of_its_source(
    transductive: Path, write_triples: Writer
) -> None:
    relations = Vocabulary(["s", "r"], kind="relation")
    graph = load_graph(transductive, relations)
    everything = Split("test", graph, graph.facts, graph.facts)
    assert named(everything, graph.facts) == TRAIN + VALID + TEST
    path = write_triples(transductive / "more.tsv", OTHER_TEST)
    other = load_graph(path, relations)
    assert named(Split("test", other, other.facts, other.facts), other.facts) == OTHER_TEST
    with pytest.raises(DataError, match=r"'r' .*more\.tsv"):
        load_graph(path, Vocabulary(["s"], kind="relation"))
