import json
import logging
from pathlib import Path

import pytest
import torch
from torch import Tensor

from knowformer.data.dataset import Dataset, Split
from knowformer.data.loading import load_dataset
from knowformer.errors import BundleError, ConfigError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer
from knowformer.pipeline import starting_settings, train, training_splits
from knowformer.reasoner import Reasoner
from knowformer.runs.folder import read_metrics
from knowformer.storage.tensor_files import read_tensors
from knowformer.training.clock import Clock
from knowformer.training.config import RunConfig
from knowformer.training.defaults import LEFT_OPEN
from knowformer.training.events import Event, ValidationEvent, read_events
from knowformer.training.settings_file import flat_settings, parse_config, recommended_settings
from knowformer.training.stopping import StopTraining


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
    kinds = [event["kind"] for event in events if event["kind"] != "work"]
    assert kinds[:3] == ["plan", "start", "training"]
    assert events[-1]["kind"] == "end"
    work = [event["doing"] for event in events if event["kind"] == "work"]
    assert list(dict.fromkeys(work)) == ["reading", "preparing", "validating", "writing"]
    assert reasoner.config.training.batch_size == 16  # chosen once, and stored
    validation = next(event for event in events if event["kind"] == "validation")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text("utf-8"))
    assert metrics["best_validation"] == {
        key: value
        for key, value in validation.items()
        if key not in {"kind", "best", "elapsed_seconds"}
    } | {"num_facts": len(ring.valid.facts)}


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
    work = [event["doing"] for event in events if event["kind"] == "work"]
    assert work[-2:] == ["calibrating", "writing"]
    assert reasoner.calibration is not None
    assert Reasoner.from_pretrained(tmp_path).calibrate() == reasoner.calibration


def test_a_finished_run_is_resumed_without_training_or_other_bits(
    ring: Dataset, tmp_path: Path
) -> None:
    train(ring, tmp_path, config=config_of())
    weights = (tmp_path / "model.safetensors").read_bytes()
    events: list[Event] = []
    train(None, tmp_path, resume=True, on_event=events.append)
    assert {event["kind"] for event in events} == {"work", "start", "end"}
    assert (tmp_path / "model.safetensors").read_bytes() == weights


def test_other_settings_or_no_run_to_resume_are_refused(ring: Dataset, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="Name a graph"):
        train(None, tmp_path / "none", resume=True)
    train(ring, tmp_path / "run", config=config_of())
    other = config_of(learning_rate=0.5)
    with pytest.raises(ConfigError, match=r"training\.learning_rate = 0\.005, got 0\.5"):
        train(ring, tmp_path / "run", config=other, resume=True)


def test_a_finished_run_is_trained_further(ring: Dataset, tmp_path: Path) -> None:
    train(ring, tmp_path, config=config_of())
    before = read_events(tmp_path / "events.jsonl")
    train(None, tmp_path, config=config_of(max_epochs=3), resume=True)
    events = read_events(tmp_path / "events.jsonl")
    assert events[: len(before)] == before
    assert events[-1]["step"] == 3 * before[-1]["step"]
    assert Reasoner.from_pretrained(tmp_path).config.training.max_epochs == 3


def test_a_callback_ends_a_run_which_is_then_trained_further(ring: Dataset, tmp_path: Path) -> None:
    told: list[Event] = []

    def stop_at_once(event: Event) -> None:
        if event["kind"] == "training":
            raise StopTraining("enough")

    config = config_of(max_epochs=5, validations_per_epoch=2)
    train(ring, tmp_path, config=config, on_event=[stop_at_once, told.append])
    events = read_events(tmp_path / "events.jsonl")
    assert [event["kind"] for event in events] == ["training", "validation", "stop"]
    assert [event["kind"] for event in told if event["kind"] != "work"][-1] == "end"
    step = events[-1]["step"]
    assert read_metrics(tmp_path)["stopped"] == {"step": step, "reason": "enough"}
    assert read_metrics(tmp_path)["best_validation"]["step"] == step

    train(None, tmp_path, resume=True)  # a run that was ended is over
    assert read_events(tmp_path / "events.jsonl") == events

    def stop_after_validation(model: KnowFormer, event: ValidationEvent) -> None:
        del model, event
        raise StopTraining

    further = config_of(max_epochs=6, validations_per_epoch=2)
    train(None, tmp_path, config=further, resume=True, on_validation=stop_after_validation)
    added = read_events(tmp_path / "events.jsonl")[len(events) :]
    assert [event["kind"] for event in added] == ["training", "validation", "stop"]
    assert added[-1]["step"] > step
    assert read_metrics(tmp_path)["stopped"]["reason"] == "a callback asked for it"

    train(None, tmp_path, config=config_of(max_epochs=7, validations_per_epoch=2), resume=True)
    assert read_events(tmp_path / "events.jsonl")[-1]["kind"] == "validation"
    assert "stopped" not in read_metrics(tmp_path)


def test_a_run_starts_from_the_weights_of_another(ring: Dataset, tmp_path: Path) -> None:
    source = train(ring, tmp_path / "source", config=config_of())
    facts = torch.cat([ring.train.facts, ring.valid.facts])
    relations = Vocabulary(reversed(ring.relations.names), kind="relation")
    facts[:, 1] = 1 - facts[:, 1]
    graph = KnowledgeGraph(ring.train.graph.entities, relations, facts)
    splits = [Split(name, graph, facts, facts) for name in ("train", "valid", "test")]
    more = Dataset("ring with its relations in another order", *splits)
    config = config_of(learning_rate=1e-12)
    run = train(more, tmp_path / "run", config=config, start_from=tmp_path / "source")
    table = source.model.encoder.query_relations.weight
    tuned = run.model.encoder.query_relations.weight
    torch.testing.assert_close(tuned, table[[1, 0, 3, 2]])
    _, origin = read_tensors(tmp_path / "run" / "initial.safetensors")
    assert origin["run"] == str(tmp_path / "source")
    # Killed before its first checkpoint, it starts from the same weights.
    (tmp_path / "run" / "checkpoint.safetensors").unlink()
    again = train(None, tmp_path / "run", resume=True)
    assert torch.equal(again.model.encoder.query_relations.weight, tuned)


def test_a_budget_that_is_spent_leaves_the_calibration_for_later(
    ring: Dataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    late = Clock()
    late.add(3600.0)
    with caplog.at_level(logging.INFO):
        reasoner = train(ring, tmp_path, config=config_of(max_minutes=1), clock=late)
    assert reasoner.calibration is None
    assert "leaves no time" in caplog.text
    events = read_events(tmp_path / "events.jsonl")
    assert [event["kind"] for event in events] == ["validation"]  # and no step


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


TINY = {"model.hidden_dim": 16, "model.num_layers": 1, "training.max_epochs": 1, "threads": 1}


def test_settings_change_what_they_name_and_no_more(ring: Dataset, tmp_path: Path) -> None:
    advised = starting_settings("wn18rr_v1")
    assert advised == recommended_settings("wn18rr_v1")
    assert starting_settings(ring) == {}
    graph = KnowledgeGraph(ring.train.graph.entities, ring.relations, ring.train.known)
    reasoner = train(graph, tmp_path, settings=TINY | {"seed": 3}, calibrate=False)
    assert reasoner.dataset.same_as(load_dataset(graph, seed=3))
    chosen, default = flat_settings(reasoner.config), flat_settings(RunConfig())
    assert {k for k in chosen if chosen[k] != default[k]} == {*TINY, "seed", *LEFT_OPEN}
    further = train(graph, tmp_path, settings={"training.max_epochs": 2}, resume=True)
    assert further.config.training.max_epochs == 2
    assert further.config.model == reasoner.config.model


def test_settings_that_cannot_be_are_refused_before_anything_is_written(
    ring: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"in `settings`\. Did you mean 'training.patience'"):
        train(ring, tmp_path / "run", settings={"training.patiens": 2})
    with pytest.raises(ConfigError, match="`settings` or `config`, got both"):
        train(ring, tmp_path / "run", settings=TINY, config=config_of())
    assert not (tmp_path / "run").exists()
