import numpy as np
import pytest
import torch

from knowformer.data.dataset import Dataset, Split
from knowformer.training.sampling.epochs import TrainingPasses


def passes_of(split: Split, region_size: int | None) -> TrainingPasses:
    return TrainingPasses(split, targets="all", batch_size=4, region_size=region_size)


def asked(passes: TrainingPasses, split: Split, *, skip: int = 0) -> list[list[list[int]]]:
    """The facts of each batch in the numbers of the whole graph."""
    keys = {key: number for number, key in enumerate(split.graph.entity_keys.tolist())}
    found: list[list[list[int]]] = []
    for graph, batch in passes.epoch(torch.Generator().manual_seed(0), skip=skip):
        whole = torch.tensor([keys[key] for key in graph.entity_keys.tolist()])
        facts = batch.facts
        found.append(torch.stack([whole[facts[:, 0]], facts[:, 1], whole[facts[:, 2]]], 1).tolist())
    return found


@pytest.fixture
def split(ring: Dataset) -> Split:
    return ring.for_training().train


def test_without_a_size_every_batch_has_the_whole_graph(split: Split) -> None:
    passes = passes_of(split, None)
    graphs = {graph for graph, _ in passes.epoch(torch.Generator().manual_seed(0))}
    assert graphs == {passes.whole}


def test_regions_ask_for_facts_of_the_graph_each_once(split: Split) -> None:
    passes = passes_of(split, len(split.graph.entities) // 3)
    facts = [tuple(fact) for batch in asked(passes, split) for fact in batch]
    num_relations = len(split.graph.relations)
    real = {tuple(fact) for fact in split.facts.tolist()}
    real |= {(t, r + num_relations, h) for h, r, t in real}
    assert len(set(facts)) == len(facts)
    assert set(facts) <= real
    assert len(facts) > len(real) / 3


def test_a_region_sees_its_own_facts_only(split: Split) -> None:
    passes = passes_of(split, len(split.graph.entities) // 3)
    for graph, _ in passes.epoch(torch.Generator().manual_seed(0)):
        assert graph.adjacency.num_entities == len(graph.entity_keys)
        assert graph.adjacency.num_edges < split.graph.adjacency.num_edges
        assert np.isin(graph.entity_keys, split.graph.entity_keys).all()


@pytest.mark.parametrize("skip", [1, 2, 5])
@pytest.mark.parametrize("parts", [1, 3])
def test_skipping_leaves_the_rest_as_it_was(split: Split, skip: int, parts: int) -> None:
    passes = passes_of(split, len(split.graph.entities) // parts)
    assert asked(passes, split, skip=skip) == asked(passes, split)[skip:]


def test_an_epoch_outside_regions_has_the_whole_graph(split: Split) -> None:
    passes = passes_of(split, len(split.graph.entities) // 3)
    order = torch.Generator().manual_seed(0)
    assert {graph for graph, _ in passes.epoch(order, in_regions=False)} == {passes.whole}


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("num_steps", [1, 7, 100])
def test_work_rises_to_one_and_is_that_of_steps_without_regions(
    split: Split, share: float, num_steps: int
) -> None:
    whole, cut = passes_of(split, None), passes_of(split, len(split.graph.entities) // 4)
    work = [cut.work_done(step, num_steps, share) for step in range(num_steps + 1)]
    assert work[0] == 0.0
    assert work[-1] == 1.0
    assert work == sorted(work)
    steps = [whole.work_done(step, num_steps, share) for step in range(num_steps + 1)]
    assert steps == [step / num_steps for step in range(num_steps + 1)]


def test_a_step_on_the_whole_graph_counts_as_much_as_it_costs(split: Split) -> None:
    cut = passes_of(split, len(split.graph.entities) // 4)
    work = [cut.work_done(step, 100, 0.5) for step in range(101)]
    assert work[80] == pytest.approx(0.5)  # 80 steps of cost 1, 20 of cost 4
    assert work[90] == pytest.approx(0.75)
    assert cut.mean_cost(0.5) == pytest.approx(0.8 * 1 + 0.2 * 4)
    assert cut.mean_cost(0.0) == 1.0
    assert passes_of(split, None).mean_cost(0.5) == 1.0
