import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from knowformer.data.dataset import Dataset, Split
from knowformer.errors import BundleError, ConfigError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.pipeline import train, training_splits
from knowformer.reasoner import Reasoner
from knowformer.storage.tensor_files import read_tensors
from knowformer.training.config import RunConfig
from knowformer.training.events import Event, ValidationEvent, read_events
from knowformer.training.settings_file import parse_config


def config_of(**training: object) -> RunConfig:
    settings = {
        "model": {
            "hidden_dim": 16,
            "num_heads": 4,
            "num_layers": 1,
            "num_query_key_hops": 1,
            "num_value_hops": 1,
        },
        "training": {"max_epochs": 1, **training},
        "threads": 1,
    }
    return parse_config(settings, where="test")


def test_the_settings_decide_the_validation_holdout(ring: Dataset) -> None:
    plain = training_splits(ring, config_of())
    assert plain.valid.graph is ring.valid.graph
    held_out = training_splits(ring, config_of(validation_region=0.3))
    assert not set(held_out.train.graph.entities) & set(held_out.valid.graph.entities)


def test_a_run_reports_its_plan_first_and_leaves_its_best_validation(
    ring: Dataset, tmp_path: Path
) -> None:
    events: list[Event] = []
    reasoner = train(ring, tmp_path / "run", config=config_of(), on_event=events.append)
    assert [event["kind"] for event in events][:2] == ["plan", "training"]
    assert reasoner.config.training.batch_size == 16  # chosen once, and stored
    validation = next(event for event in events if event["kind"] == "validation")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text("utf-8"))
    assert metrics["best_validation"] == {
        key: value
        for key, value in validation.items()
        if key not in {"kind", "best", "elapsed_seconds"}
    }


def test_the_calibration_is_that_of_the_stored_model(ring: Dataset, tmp_path: Path) -> None:
    facts = torch.cat([ring.train.facts, ring.valid.facts, ring.test.facts])
    graph = KnowledgeGraph(ring.train.graph.entities, ring.relations, facts[:16])
    dataset = Dataset(
        "ring with more validation facts",
        train=Split("train", graph, facts[:16], facts),
        valid=Split("valid", graph, facts[16:28], facts),
        test=Split("test", graph, facts[28:], facts),
    )
    events: list[Event] = []
    reasoner = train(dataset, tmp_path, config=config_of(), on_event=events.append)
    assert events[-1]["kind"] == "calibration"
    assert reasoner.calibration is not None
    assert Reasoner.from_pretrained(tmp_path).calibrate() == reasoner.calibration


def test_a_finished_run_is_resumed_without_training_or_other_bits(
    ring: Dataset, tmp_path: Path
) -> None:
    train(ring, tmp_path, config=config_of())
    weights = (tmp_path / "model.safetensors").read_bytes()
    events: list[Event] = []
    train(None, tmp_path, resume=True, on_event=events.append)
    assert events == []
    assert (tmp_path / "model.safetensors").read_bytes() == weights


def test_other_settings_or_no_run_to_resume_are_refused(ring: Dataset, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="Name a graph"):
        train(None, tmp_path / "none", resume=True)
    train(ring, tmp_path / "run", config=config_of())
    other = config_of(learning_rate=0.5)
    with pytest.raises(ConfigError, match=r"training\.learning_rate = 0\.005, got 0\.5"):
        train(ring, tmp_path / "run", config=other, resume=True)


def test_every_validation_hands_out_the_weights_it_measured(ring: Dataset, tmp_path: Path) -> None:
    weights: dict[int, dict[str, Tensor]] = {}

    def keep(model: KnowFormer, event: ValidationEvent) -> None:
        weights[event["step"]] = {key: value.clone() for key, value in model.state_dict().items()}

    reasoner = train(
        ring,
        tmp_path,
        config=config_of(max_epochs=3, batch_size=16),
        on_validation=keep,
        calibrate=False,
    )
    validated = [e for e in read_events(tmp_path / "events.jsonl") if e["kind"] == "validation"]
    assert [event["step"] for event in validated] == list(weights)
    assert len(weights) == 3
    best = [event["step"] for event in validated if event["best"]][-1]
    stored, _ = read_tensors(tmp_path / "model.safetensors")
    for name, value in reasoner.model.state_dict().items():
        assert torch.equal(value, stored[name])
        assert torch.equal(value, weights[best][name])
    assert not (tmp_path / "calibration.json").exists()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]  # keeping is up to the caller
