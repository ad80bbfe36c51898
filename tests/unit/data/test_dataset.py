import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import Tensor

from knowformer.data.dataset import Dataset
from knowformer.data.loading import load_dataset, load_graph
from knowformer.errors import DataError, VocabularyError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from tests.unit.data.conftest import (
    TEST,
    TRAIN,
    VALID,
    Writer,
    many_triples,
    named,
)


def test_a_split_is_found_by_name_and_others_are_refused(transductive: Path) -> None:
    dataset = load_dataset(transductive)
    assert dataset.split("valid") is dataset.valid
    with pytest.raises(DataError, match="train, valid, test, got 'dev'"):
        dataset.split("dev")


@pytest.mark.parametrize("name", ["\x1b[31m\n", "caf\udce9", "x" * 100_000])
def test_whatever_its_name_it_is_shown_in_one_line(transductive: Path, name: str) -> None:
    shown = dataclasses.replace(load_dataset(transductive), name=name).name
    assert shown.isprintable()
    assert len(shown) < 4000


def tensors_in(thing: object, seen: set[int]) -> Iterator[Tensor]:
    """Yields every tensor that can be reached from an object, through fields and containers."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, Tensor):
        yield thing
    elif dataclasses.is_dataclass(thing) or hasattr(thing, "__dict__"):
        for part in vars(thing).values():
            yield from tensors_in(part, seen)
    elif isinstance(thing, dict):
        for part in thing.values():
            yield from tensors_in(part, seen)
    elif isinstance(thing, list | tuple | set):
        for part in thing:
            yield from tensors_in(part, seen)


@pytest.mark.parametrize("layout", ["transductive", "inductive", "fully_inductive", "single_file"])
def test_training_cannot_reach_a_test_fact(
    layout: str, tmp_path: Path, write_triples: Writer, request: pytest.FixtureRequest
) -> None:
    if layout == "single_file":
        dataset = load_dataset(write_triples(tmp_path / "mine.tsv", many_triples()))
    else:
        dataset = load_dataset(request.getfixturevalue(layout))
    splits = dataset.for_training()
    secrets = set(named(dataset.test, dataset.test.facts))
    for split in (splits.train, splits.valid):
        reachable = list(tensors_in(split, set()))
        assert any(tensor is split.facts for tensor in reachable)
        for tensor in reachable:
            assert tensor.shape[1:] == (3,)
            assert not secrets & set(named(split, tensor))


def test_selection_filters_by_train_and_valid_alone(transductive: Path) -> None:
    dataset = load_dataset(transductive)
    splits = dataset.for_training()
    assert named(splits.valid, splits.valid.known) == TRAIN + VALID
    assert named(splits.train, splits.train.facts) == TRAIN
    # What reports are filtered by is untouched.
    assert named(dataset.valid, dataset.valid.known) == TRAIN + VALID + TEST


def test_triples_in_memory_are_split_as_their_file_is(
    tmp_path: Path, write_triples: Writer
) -> None:
    triples = many_triples()
    from_file = load_dataset(write_triples(tmp_path / "facts.tsv", triples), seed=4)
    assert Dataset.from_triples([*triples, triples[0]], seed=4).same_as(from_file)
    assert load_dataset(KnowledgeGraph.from_triples(triples), seed=4).same_as(from_file)
    assert load_dataset(from_file, seed=5) is from_file


def test_triples_may_come_with_splits(transductive: Path) -> None:
    assert Dataset.from_triples(TRAIN, VALID, TEST).same_as(load_dataset(transductive))
    with pytest.raises(DataError, match="got 'q' in valid"):
        Dataset.from_triples(TRAIN, [("a", "q", "b")], TEST)
    with pytest.raises(DataError, match="`valid` and `test`"):
        Dataset.from_triples(TRAIN, test=TEST)


def test_a_dataset_is_renumbered_to_a_models_relations(inductive: Path) -> None:
    dataset = load_dataset(inductive)
    relations = Vocabulary(["extra", "s", "r"], kind="relation")
    kept = load_dataset(dataset, relations=relations)
    assert kept.same_as(load_dataset(inductive, relations=relations))
    assert kept.train.graph is kept.valid.graph  # as it was
    assert load_graph(dataset, relations).same_as(load_graph(inductive, relations))
    with pytest.raises(VocabularyError, match="'s'"):
        load_dataset(dataset, relations=Vocabulary(["r"], kind="relation"))
