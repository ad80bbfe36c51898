import numpy as np
import pytest
import torch

from knowformer.data.dataset import Dataset, Split
from knowformer.data.mixture import mix
from knowformer.training.sampling.carving import CarvedGraph, Carver
from knowformer.training.sampling.epochs import TrainingEpochs
from tests.unit.data.test_mixture import ring

SIZE = 24


@pytest.fixture(scope="module")
def two() -> Split:
    """Two graphs side by side, the second of which is larger."""
    return mix([ring("a", 40), ring("b", 200)]).train


@pytest.fixture(scope="module")
def carver(two: Split) -> Carver:
    return Carver(two.graph.adjacency, two.facts, size=SIZE)


def carved(carver: Carver, seed: int) -> CarvedGraph:
    graph = carver.carve(torch.Generator().manual_seed(seed))
    assert graph is not None
    return graph


def named(graph: CarvedGraph, facts: torch.Tensor) -> set[tuple[int, ...]]:
    """Facts in the numbers of the graph that they were carved from."""
    head, relation, tail = facts.numpy().T
    whole = graph.entities[head], graph.relations[relation], graph.entities[tail]
    return set(zip(*(column.tolist() for column in whole), strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_asked_facts_are_apart_but_speak_of_what_is_seen(
    carver: Carver, two: Split, seed: int
) -> None:
    graph = carved(carver, seed)
    visible, asked = named(graph, graph.visible), named(graph, graph.asked)
    assert asked
    assert not visible & asked
    assert visible | asked <= {tuple(fact) for fact in two.facts.tolist()}
    assert len(graph.entities) <= SIZE
    assert set(graph.visible[:, [0, 2]].flatten().tolist()) == set(range(len(graph.entities)))
    assert set(graph.visible[:, 1].tolist()) == set(range(len(graph.relations)))


def test_a_carved_graph_is_of_one_graph_and_both_are_drawn(carver: Carver, two: Split) -> None:
    graphs = [carved(carver, seed) for seed in range(20)]
    name = two.graph.relations.name
    origins = [{name(r).split("/")[0] for r in graph.relations.tolist()} for graph in graphs]
    assert all(len(origin) == 1 for origin in origins)
    assert {name for origin in origins for name in origin} == {"a", "b"}


def test_a_seed_decides_and_others_draw_other_graphs(carver: Carver) -> None:
    one, again, other = (carved(carver, seed) for seed in (1, 1, 2))
    assert torch.equal(one.visible, again.visible)
    assert np.array_equal(one.entities, again.entities)
    assert not np.array_equal(one.entities, other.entities)


def test_a_graph_with_nothing_to_ask_is_not_carved() -> None:
    only = torch.tensor([[0, 0, 1]])
    split = mix([ring("a", 40)]).train
    assert Carver(split.graph.adjacency, only, size=SIZE).carve(torch.Generator()) is None


def epochs_of(split: Split) -> TrainingEpochs:
    return TrainingEpochs(split, targets="all", batch_size=2, carved_size=SIZE)


@pytest.mark.parametrize("skip", [1, 17, 130])
def test_skipping_leaves_the_rest_of_an_epoch_as_it_was(two: Split, skip: int) -> None:
    def batches(skip: int) -> list[tuple[list[int], list[list[int]]]]:
        order = torch.Generator().manual_seed(0)
        drawn = epochs_of(two).batches(order, skip=skip)
        return [(g.entity_keys.tolist(), batch.facts.tolist()) for g, batch in drawn]

    every = batches(0)
    assert len(every) == len(epochs_of(two))
    assert batches(skip) == every[skip:]


def test_entities_keep_their_keys(ring: Dataset) -> None:
    split = ring.for_training().train
    known = set(split.graph.entity_keys.tolist())
    for graph, _ in epochs_of(split).batches(torch.Generator().manual_seed(0)):
        assert set(graph.entity_keys.tolist()) <= known
