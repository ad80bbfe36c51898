import numpy as np
import pytest
import torch

from knowformer.data.dataset import Dataset, Split
from knowformer.training.sampling.epochs import TrainingEpochs


def epochs_of(split: Split, partition_size: int | None) -> TrainingEpochs:
    return TrainingEpochs(split, targets="all", batch_size=4, partition_size=partition_size)


def asked(epochs: TrainingEpochs, split: Split, *, skip: int = 0) -> list[list[list[int]]]:
    """The facts of each batch in the numbers of the whole graph."""
    keys = {key: number for number, key in enumerate(split.graph.entity_keys.tolist())}
    batches: list[list[list[int]]] = []
    for graph, batch in epochs.batches(torch.Generator().manual_seed(0), skip=skip):
        whole = torch.tensor([keys[key] for key in graph.entity_keys.tolist()])
        facts = batch.facts
        batches.append(
            torch.stack([whole[facts[:, 0]], facts[:, 1], whole[facts[:, 2]]], 1).tolist()
        )
    return batches


@pytest.fixture
def split(ring: Dataset) -> Split:
    return ring.for_training().train


def test_without_a_size_every_batch_has_the_whole_graph(split: Split) -> None:
    epochs = epochs_of(split, None)
    graphs = {graph for graph, _ in epochs.batches(torch.Generator().manual_seed(0))}
    assert graphs == {epochs.whole}


def test_partitions_ask_for_facts_of_the_graph_each_once(split: Split) -> None:
    epochs = epochs_of(split, len(split.graph.entities) // 3)
    facts = [tuple(fact) for batch in asked(epochs, split) for fact in batch]
    num_relations = len(split.graph.relations)
    real = {tuple(fact) for fact in split.facts.tolist()}
    real |= {(t, r + num_relations, h) for h, r, t in real}
    assert len(set(facts)) == len(facts)
    assert set(facts) <= real
    assert len(facts) > len(real) / 3


def test_a_partition_sees_only_its_facts(split: Split) -> None:
    epochs = epochs_of(split, len(split.graph.entities) // 3)
    for graph, _ in epochs.batches(torch.Generator().manual_seed(0)):
        assert graph.adjacency.num_entities == len(graph.entity_keys)
        assert graph.adjacency.num_edges < split.graph.adjacency.num_edges
        assert np.isin(graph.entity_keys, split.graph.entity_keys).all()


@pytest.mark.parametrize("skip", [1, 2, 5])
@pytest.mark.parametrize("num_partitions", [1, 3])
def test_skipping_leaves_the_rest_as_it_was(split: Split, skip: int, num_partitions: int) -> None:
    epochs = epochs_of(split, len(split.graph.entities) // num_partitions)
    assert asked(epochs, split, skip=skip) == asked(epochs, split)[skip:]


def test_an_epoch_without_partitions_has_the_whole_graph(split: Split) -> None:
    epochs = epochs_of(split, len(split.graph.entities) // 3)
    order = torch.Generator().manual_seed(0)
    assert {graph for graph, _ in epochs.batches(order, partitioned=False)} == {epochs.whole}


def test_the_whole_graph_costs_as_much_more_as_it_is_larger(split: Split) -> None:
    num_entities = len(split.graph.entities)
    assert epochs_of(split, num_entities // 4).whole_graph_cost == 4.0
    assert epochs_of(split, 2 * num_entities).whole_graph_cost == 1.0
    assert epochs_of(split, None).whole_graph_cost == 1.0
