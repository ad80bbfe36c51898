"""The data set that the next training gets, from real stores."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from knowformer import ModelConfig, Reasoner, RunConfig
from knowformer.data.dataset import SPLIT_NAMES, Dataset
from knowformer.data.labels import Labels
from knowformer.errors import BundleError, DataError
from knowformer.graph.inverse import num_with_inverses
from knowformer.live.decisions import Decision
from knowformer.live.facts import Change
from knowformer.live.next_training import dataset_with_live_facts
from knowformer.live.snapshots import STORE_FILE, LiveGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.runs.folder import Bundle
from knowformer.runs.stored_dataset import save_run_dataset
from knowformer.storage.triples_io import NamedTriple

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=1)


def triples(dataset: Dataset, split: str) -> list[NamedTriple]:
    """The facts of a split, by name, in their order."""
    entities, relations = dataset.train.graph.entities.names, dataset.relations.names
    facts = dataset.split(split).facts.tolist()
    return [(entities[head], relations[relation], entities[tail]) for head, relation, tail in facts]


def open_store(dataset: Dataset, path: Path) -> LiveGraph:
    model = KnowFormer(SMALL, num_with_inverses(len(dataset.relations)))
    bundle = Bundle(path.parent, RunConfig(model=SMALL), dataset, model.eval(), "softmax")
    return LiveGraph.open(Reasoner.from_pretrained(bundle, threads=1), path)


@pytest.fixture
def named(ring: Dataset) -> Dataset:
    return replace(ring, labels=Labels({"place00": "The Gate"}, {}))


@pytest.fixture
def live(named: Dataset, tmp_path: Path) -> Iterator[LiveGraph]:
    save_run_dataset(tmp_path, named)
    with closing(open_store(named, tmp_path / STORE_FILE)) as opened:
        yield opened


def test_facts_added_are_trained_on_and_facts_removed_leave_their_split(
    live: LiveGraph, named: Dataset, tmp_path: Path
) -> None:
    kept = {split: triples(named, split) for split in SPLIT_NAMES}
    gone = [kept[split].pop() for split in SPLIT_NAMES]
    live.change([Change(*fact, "remove") for fact in gone])
    live.change([Change("newcomer", "next", "The Gate"), Change("place00", "skip", "place09")])
    after = dataset_with_live_facts(tmp_path)  # the store is open all the while
    added = [("newcomer", "next", "place00"), ("place00", "skip", "place09")]
    assert triples(after, "train") == [*kept["train"], *added]
    assert triples(after, "valid") == kept["valid"]
    assert triples(after, "test") == kept["test"]
    assert after.relations == named.relations
    assert after.labels == named.labels
    assert not after.is_inductive


def test_what_was_taken_back_and_mere_verdicts_change_nothing(
    live: LiveGraph, named: Dataset, tmp_path: Path
) -> None:
    removed = live.change([Change(*triples(named, "valid")[0], "remove")])
    live.undo(removed.version)
    added = live.change([Change("place00", "next", "place05")])
    live.undo(added.version)
    live.decide(Decision("place00", "next", "place06", "accept"))
    live.decide(Decision("place00", "next", "place07", "reject"))
    assert dataset_with_live_facts(tmp_path).same_as(named)
    live.decide(Decision("place00", "next", "place08", "accept"), add_fact=True)
    after = dataset_with_live_facts(tmp_path)
    assert triples(after, "train")[-1] == ("place00", "next", "place08")
    assert len(after.train.facts) == len(named.train.facts) + 1


def test_a_store_elsewhere_is_named(named: Dataset, tmp_path: Path) -> None:
    save_run_dataset(tmp_path, named)
    with pytest.raises(BundleError, match=re.escape(str(tmp_path / STORE_FILE))):
        dataset_with_live_facts(tmp_path)
    store = tmp_path / "elsewhere.sqlite"
    with closing(open_store(named, store)) as live:
        live.change([Change("place00", "next", "x")])
    after = dataset_with_live_facts(tmp_path, store=store)
    assert triples(after, "train")[-1] == ("place00", "next", "x")


def test_changes_of_another_graph_are_refused(named: Dataset, tmp_path: Path) -> None:
    save_run_dataset(tmp_path, named)
    other = Dataset.from_triples(
        [("a", "next", "b"), ("b", "skip", "c")], [("c", "next", "a")], [("a", "skip", "c")]
    )
    open_store(other, tmp_path / STORE_FILE).close()
    with pytest.raises(BundleError, match="got one of changes to another"):
        dataset_with_live_facts(tmp_path)


def test_a_run_on_two_graphs_is_refused(named: Dataset, tmp_path: Path) -> None:
    test = replace(named.test, graph=named.test.known_graph())
    save_run_dataset(tmp_path, replace(named, test=test))
    with pytest.raises(DataError, match="Expected a run on one graph"):
        dataset_with_live_facts(tmp_path)
