from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.training import plan
from knowformer.training.defaults import PREFERRED_BATCH_SIZE
from knowformer.training.loop import Trainer
from knowformer.training.plan import Plan, predicted_memory
from knowformer.training.settings_file import parse_config


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


def test_a_view_needs_less_memory_than_the_graph(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    large = random_graph(0, num_entities=6000, num_facts=6000)
    whole, seen = (
        parse_config({"model": {"view_size": size}, "threads": 1}, where="test")
        for size in (0, 500)
    )
    assert predicted_memory(seen, large, 16) < predicted_memory(whole, large, 16)


def test_a_whole_graph_that_does_not_fit_is_refused_and_views_are_named(
    random_graph: Callable[..., KnowledgeGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "total_memory", lambda: 1e8)
    graph = random_graph(0, num_entities=600, num_facts=60)
    whole, seen = (
        parse_config({"model": {"view_size": size}, "threads": 1}, where="test") for size in (0, 50)
    )
    with pytest.raises(ConfigError, match=r"takes about .* GB.*`model\.view_size`, such as 1000"):
        plan.check_memory(whole, graph)
    with pytest.raises(ConfigError, match=r"Lower model\.hidden_dim"):
        plan.check_memory(seen, graph)
