from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from knowformer.data.dataset import Dataset, Split
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.training import plan
from knowformer.training.config import RunConfig
from knowformer.training.loop import Trainer
from knowformer.training.plan import (
    PREFERRED_BATCH_SIZE,
    Plan,
    choose_batch_size,
    choose_view_size,
    predicted_memory,
)
from knowformer.training.settings_file import parse_config


def test_the_batch_is_sixteen_where_memory_allows(ring: Dataset) -> None:
    assert choose_batch_size(RunConfig(), ring.train.graph) == PREFERRED_BATCH_SIZE


@pytest.mark.parametrize("wanted", [1, 4])
def test_a_short_memory_makes_the_batch_smaller(
    ring: Dataset, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, config = ring.train.graph, RunConfig(threads=1)
    needed = predicted_memory(config, graph, wanted)
    free = 0.0 if wanted == 1 else 1.0001 * needed / plan.USABLE_FRACTION
    monkeypatch.setattr(plan, "available_memory", lambda: free)
    assert choose_batch_size(config, graph) == wanted


def test_memory_grows_with_batch_width_and_layers(ring: Dataset) -> None:
    graph = ring.train.graph

    def needed(batch_size: int = 16, **model: int) -> float:
        return predicted_memory(
            parse_config({"model": model, "threads": 1}, where="test"), graph, batch_size
        )

    assert needed() < needed(batch_size=64)
    assert needed() < needed(hidden_dim=64)
    assert needed() < needed(num_layers=6)


def test_planning_leaves_the_run_as_it_was(ring: Dataset, tmp_path: Path) -> None:
    splits = ring.for_training()
    config = parse_config(
        {"model": {"hidden_dim": 16, "num_layers": 1}, "training": {"max_epochs": 1}}, where="test"
    )
    planned, plain = Trainer(splits, config, tmp_path), Trainer(splits, config, tmp_path)
    estimate = planned.plan()
    assert estimate.batch_size == PREFERRED_BATCH_SIZE
    assert estimate.num_queries == planned.epochs.num_queries
    assert estimate.seconds_per_epoch > 0.0
    assert estimate.fits
    planned.run()
    plain.run()
    for name, value in planned.model.state_dict().items():
        assert torch.equal(value, plain.model.state_dict()[name])


@pytest.mark.parametrize(("available", "fits"), [(None, True), (3e9, True), (1e9, False)])
def test_the_event_has_every_estimate(available: float | None, fits: bool) -> None:
    estimate = Plan(16, 8, 2, 2e9, available, 1000, 60.0, 40, 20)
    event = dict(estimate.event())
    assert (event.pop("kind"), event.pop("fits")) == ("plan", fits)
    assert event == asdict(estimate)


def large_star(*, num_near: int, answers: range) -> Split:
    """6,000 entities, the first linked to the next ones, the others to none; it may like any."""
    near = torch.arange(1, num_near + 1)
    zeros = torch.zeros_like(near)
    graph = KnowledgeGraph(
        Vocabulary((str(n) for n in range(6000)), kind="entity"),
        Vocabulary(["knows", "likes"], kind="relation"),
        torch.stack([zeros, zeros, near], 1),
    )
    facts = torch.tensor([[0, 1, answer] for answer in answers])
    return Split("valid", graph, facts, torch.cat([graph.facts, facts]))


@pytest.mark.parametrize(
    ("num_near", "answers", "size"),
    [
        (300, range(1, 300, 3), 500),  # in the smallest view
        (1500, range(1, 1500, 15), 2000),  # a third, two thirds, all
        (1500, range(5000, 5100), 500),  # in none
    ],
)
def test_a_large_graph_is_seen_in_views_as_small_as_answers_allow(
    num_near: int, answers: range, size: int
) -> None:
    assert choose_view_size(RunConfig(), large_star(num_near=num_near, answers=answers)) == size


def test_small_graphs_and_partitions_are_seen_whole(ring: Dataset) -> None:
    assert choose_view_size(RunConfig(), ring.valid) == 0
    partitioned = parse_config({"training": {"region_size": 500}}, where="test")
    large = large_star(num_near=300, answers=range(1, 3))
    assert choose_view_size(partitioned, large) == 0


def test_a_view_needs_less_memory_than_the_graph(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    large = random_graph(0, num_entities=6000, num_facts=6000)
    whole, seen = (
        parse_config({"model": {"view_size": size}, "threads": 1}, where="test")
        for size in (0, 500)
    )
    assert predicted_memory(seen, large, 16) < predicted_memory(whole, large, 16)
