import inspect
import math
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from knowformer.data.dataset import Dataset, Split, TrainingSplits
from knowformer.data.holdout import hold_out
from knowformer.data.loading import load_dataset
from knowformer.errors import NonFiniteLossError
from knowformer.evaluation.evaluate import rank_split
from knowformer.evaluation.metrics import rank_metrics
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.scoring.scorer import Scorer
from knowformer.storage.tensor_files import read_tensors
from knowformer.storage.triples_io import NamedTriple
from knowformer.training import budget, loop
from knowformer.training.checkpoint import read_counters, write_counters
from knowformer.training.clock import Clock
from knowformer.training.config import RunConfig
from knowformer.training.events import Event, RecordedEvent, ValidationEvent, read_events
from knowformer.training.loop import Trainer
from knowformer.training.sampling.visibility import SeenBatch
from knowformer.training.settings_file import parse_config

Weights = dict[str, Tensor]


class Stopped(Exception):  # noqa: N818
    """What a user's Ctrl-C or a lost machine does to a run."""


def config_of(*, seed: int = 0, hidden_dim: int = 16, **training: object) -> RunConfig:
    settings: dict[str, Any] = {
        "model": {
            "hidden_dim": hidden_dim,
            "num_layers": 1,
            "num_query_key_hops": 1,
            "num_value_hops": 2,
            "num_heads": 4,
        },
        "training": {"batch_size": 8, "max_epochs": 2, "warmup_steps": 2, **training},
        "seed": seed,
    }
    return parse_config(settings, where="test")


def weights_of(trainer: Trainer) -> Weights:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def equal(first: Weights, second: Weights) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(value, second[name]) for name, value in first.items()
    )


def finished(splits: TrainingSplits, config: RunConfig, folder: Path) -> Trainer:
    folder.mkdir(exist_ok=True)
    trainer = Trainer(splits, config, folder)
    trainer.run()
    return trainer


def without_clock(events: list[RecordedEvent]) -> list[dict[str, Any]]:
    clock = {"elapsed_seconds", "queries_per_second", "seconds_left"}
    return [{key: value for key, value in e.items() if key not in clock} for e in events]


@pytest.fixture(scope="module")
def splits(ring: Dataset) -> TrainingSplits:
    return ring.for_training()


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(
    tmp_path: Path, splits: TrainingSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "LOG_EVERY_SECONDS", math.inf)  # a busy machine adds no lines
    first = finished(splits, config_of(), tmp_path / "first")
    second = finished(splits, config_of(), tmp_path / "second")
    other = finished(splits, config_of(seed=1), tmp_path / "other")
    assert equal(weights_of(first), weights_of(second))
    assert not equal(weights_of(first), weights_of(other))
    records = [read_events(tmp_path / name / "events.jsonl") for name in ("first", "second")]
    assert without_clock(records[0]) == without_clock(records[1])


def test_a_graph_that_was_scored_before_can_be_trained_on(tmp_path: Path, ring: Dataset) -> None:
    graph = KnowledgeGraph(ring.train.graph.entities, ring.relations, ring.train.graph.facts)
    splits = TrainingSplits(
        train=Split("train", graph, graph.facts, graph.facts),
        valid=replace(ring.for_training().valid, graph=graph),
    )
    trainer = Trainer(splits, config_of(max_epochs=1), tmp_path)
    Scorer(trainer.model, graph, seed=0).score(torch.tensor([0]), torch.tensor([0]))
    trainer.run()
    assert trainer.counters.finished


def test_training_lowers_the_loss_and_raises_the_validation_mrr(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    finished(splits, config_of(max_epochs=6, learning_rate=0.02), tmp_path)
    events = read_events(tmp_path / "events.jsonl")
    losses = [event["loss"] for event in events if event["kind"] == "training"]
    mrr = [event["valid_mrr"] for event in events if event["kind"] == "validation"]
    assert losses[-1] < 0.7 * losses[0]
    assert max(mrr) > mrr[0]


def test_links_are_learned_from_unlinked_pairs_and_selected_by_auroc(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    config = config_of(max_epochs=6, learning_rate=0.02, loss="pairs")
    trainer = finished(splits, config, tmp_path)
    events = read_events(tmp_path / "events.jsonl")
    losses = [event["loss"] for event in events if event["kind"] == "training"]
    auroc = [event.get("valid_auroc", 0.0) for event in events if event["kind"] == "validation"]
    assert losses[-1] < 0.7 * losses[0]
    assert auroc[-1] > 0.8
    record = trainer.counters.record_separations
    assert sum(record) / len(record) == pytest.approx(max(auroc))
    assert config.training.link == "sigmoid"


def test_events_have_the_names_that_scripts_rely_on(tmp_path: Path, splits: TrainingSplits) -> None:
    trainer = finished(splits, config_of(), tmp_path)
    events = read_events(tmp_path / "events.jsonl")
    training = [event for event in events if event["kind"] == "training"]
    validation = [event for event in events if event["kind"] == "validation"]
    assert training
    assert len(validation) == 2
    for event in training:
        assert {"step", "epoch", "loss", "queries_per_second"} <= event.keys()
        assert math.isfinite(event["loss"])
    for event in validation:
        assert {"step", "epoch", "valid_mrr", "valid_hits@1", "valid_hits@10"} <= event.keys()
        assert 0 < event["valid_mrr"] <= 1
    assert validation[-1]["step"] == trainer.counters.step


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "cross_entropy"},
        {"loss": "binary"},
        {"region_size": 6, "edge_dropout": 0.2, "averaging": 0.9, "validation_region": 0.3},
        {"region_size": 6, "whole_graph_share": 0.6, "relation_swaps": 0.5},
    ],
    ids=["cross_entropy", "binary", "partitions", "partitions_then_whole"],
)
def test_a_run_that_is_stopped_again_and_again_ends_with_the_same_bits(
    tmp_path: Path,
    splits: TrainingSplits,
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine the clock would add lines between the ends of epochs.
    monkeypatch.setattr(loop, "LOG_EVERY_SECONDS", math.inf)
    # Validations fall inside epochs too, so that resuming starts in the middle of one.
    config = config_of(**settings, num_negatives=4, validations_per_epoch=2, checkpoint_minutes=0)
    splits = hold_out(splits, entities=config.training.validation_region, seed=config.seed)
    undisturbed = finished(splits, config, tmp_path / "undisturbed")

    folder = tmp_path / "stopped"
    folder.mkdir()
    stopped: list[Event] = []

    def stop_at(number: int) -> Callable[[Event], None]:
        seen = count(1)

        def stop(event: Event) -> None:
            if event["kind"] != "work" and next(seen) == number:
                stopped.append(event)
                raise Stopped

        return stop

    # Events since the last checkpoint come again: a loss, its validation, then later losses.
    for number in (1, 2, 3, 3):
        with pytest.raises(Stopped):
            Trainer(splits, config, folder, on_event=stop_at(number)).run(resume=bool(stopped))
    assert [e["kind"] for e in stopped] == ["training", "validation", "training", "training"]
    assert [first["step"] < then["step"] for first, then in pairwise(stopped)] == [
        False,
        True,
        True,
    ]
    resumed = Trainer(splits, config, folder)
    resumed.run(resume=True)
    assert equal(weights_of(resumed), weights_of(undisturbed))
    assert equal(resumed.selection.best_weights, undisturbed.selection.best_weights)
    assert resumed.counters.step == undisturbed.counters.step
    assert resumed.counters.best_mrr == undisturbed.counters.best_mrr
    records = [read_events(tmp_path / name / "events.jsonl") for name in ("stopped", "undisturbed")]
    assert without_clock(records[0]) == without_clock(records[1])


def test_a_finished_run_that_is_resumed_is_left_as_it_is(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    first = finished(splits, config_of(), tmp_path)
    record = (tmp_path / "events.jsonl").read_bytes()
    again = Trainer(splits, config_of(), tmp_path)
    again.run(resume=True)
    assert equal(weights_of(again), weights_of(first))
    assert (tmp_path / "events.jsonl").read_bytes() == record


@pytest.mark.parametrize("hidden_dim", [8, 16], ids=["reference", "fused"])
def test_a_loss_that_is_not_a_number_stops_the_run_before_the_update(
    tmp_path: Path, splits: TrainingSplits, hidden_dim: int
) -> None:
    trainer = Trainer(splits, config_of(hidden_dim=hidden_dim), tmp_path)
    with torch.no_grad():
        trainer.model.encoder.query_relations.weight.fill_(torch.nan)
    before = weights_of(trainer)
    says = r"a finite loss, got nan at step 0 on a batch of 8 queries .*ids\): \[\["
    with pytest.raises(NonFiniteLossError, match=says):
        trainer.run()
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value.nan_to_num(7.0), before[name].nan_to_num(7.0)), name


def test_the_step_that_failed_is_named(tmp_path: Path, splits: TrainingSplits) -> None:
    def poison(event: Event) -> None:
        if event["kind"] == "validation":
            with torch.no_grad():
                trainer.model.encoder.query_relations.weight.fill_(torch.inf)

    trainer = Trainer(splits, config_of(), tmp_path, on_event=poison)
    with pytest.raises(NonFiniteLossError) as caught:
        trainer.run()
    steps = [event["step"] for event in read_events(tmp_path / "events.jsonl")]
    assert f"at step {steps[-1]} on a batch" in str(caught.value)
    assert steps[-1] > 0


def test_a_gradient_that_is_not_finite_stops_the_run_before_the_update(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    trainer = Trainer(splits, config_of(), tmp_path)
    first, last = trainer.model.score_hidden, trainer.model.score_last
    with torch.no_grad():
        # Nearly equal scores have a finite loss; factors this large overflow on the way back.
        trainer.model.layers[-1].output_norm.weight.fill_(1e-30)
        first.weight.fill_(1e20)
        first.bias.fill_(1e-3)
        last.weight.fill_(3e38)
    before = weights_of(trainer)
    with pytest.raises(NonFiniteLossError, match=r"a finite gradient.* at step 0 on a batch of 8"):
        trainer.run()
    assert equal(weights_of(trainer), before)


def test_the_run_ends_with_the_weights_of_the_best_checkpoint(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    best: list[tuple[int, Weights]] = []

    def keep(model: KnowFormer, event: ValidationEvent) -> None:
        best.append((event["step"], {n: value.clone() for n, value in model.state_dict().items()}))

    def spoil(model: KnowFormer, event: ValidationEvent) -> None:
        if event["epoch"] == 4:  # the last epoch has no learning rate left to recover with
            with torch.no_grad():
                model.score_last.weight.neg_()

    config = config_of(seed=2, max_epochs=6, learning_rate=0.02)
    trainer = Trainer(splits, config, tmp_path, on_best=keep, on_validated=spoil)
    model = trainer.run()
    events = read_events(tmp_path / "events.jsonl")
    validation = [event for event in events if event["kind"] == "validation"]
    chosen = [event for event in validation if event["best"]][-1]
    assert not validation[-1]["best"]
    assert validation[-1]["valid_mrr"] < chosen["valid_mrr"]
    assert trainer.counters.best_mrr == chosen["valid_mrr"]
    assert trainer.counters.best_step == chosen["step"] == best[-1][0]
    assert equal(weights_of(trainer), best[-1][1])
    ranks, _, _ = rank_split(Scorer(model, splits.valid.graph, seed=2), splits.valid)
    assert rank_metrics(ranks.realistic)["mrr"] == pytest.approx(chosen["valid_mrr"], abs=1e-9)


def test_the_latest_of_weights_that_cannot_be_told_apart_is_kept(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    # A rate too small to change any rank.
    trainer = finished(splits, config_of(max_epochs=4, learning_rate=1e-12), tmp_path)
    assert trainer.counters.best_step == trainer.counters.step
    assert trainer.counters.record_mrr == trainer.counters.best_mrr


def test_patience_ends_a_run_that_no_longer_improves(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    # A rate too small to change any rank: the first validation is never beaten.
    finished(splits, config_of(max_epochs=50, learning_rate=1e-12, patience=3), tmp_path)
    events = read_events(tmp_path / "events.jsonl")
    best = [event["best"] for event in events if event["kind"] == "validation"]
    assert len(best) == 4


def test_a_time_budget_ends_the_run(tmp_path: Path, splits: TrainingSplits) -> None:
    ticks = count()
    clock = Clock(
        lambda: next(ticks) / 100
    )  # every look at the clock takes a hundredth of a second
    trainer = Trainer(splits, config_of(max_epochs=10**6, max_minutes=0.01), tmp_path, clock=clock)
    trainer.run()
    assert trainer.counters.finished
    assert 2 < trainer.counters.step < 60  # 0.6 s; a step looks more than once
    events = read_events(tmp_path / "events.jsonl")
    assert events[-1]["kind"] == "validation"
    assert events[-1]["step"] == trainer.counters.step


def test_a_time_budget_asks_for_as_many_validation_facts_as_there_is_time_for(
    tmp_path: Path, splits: TrainingSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "MIN_VALID_FACTS", 1)
    assert len(splits.valid.facts) > 1
    ticks = count()
    clock = Clock(lambda: next(ticks) / 4)  # a question takes long
    config = config_of(max_epochs=10**6, max_minutes=0.02, validations_per_epoch=100)
    trainer = Trainer(splits, config, tmp_path, clock=clock)
    trainer.run()
    assert trainer.counters.num_valid_facts == 1
    assert len(trainer.counters.record_reciprocal_ranks) == 2
    again = Trainer(splits, config, tmp_path, clock=Clock(lambda: 0.0))
    again.run(resume=True)
    assert again.counters.num_valid_facts == 1


@pytest.mark.usefixtures("default_interrupt")
def test_ctrl_c_keeps_the_step_and_the_run_ends_with_the_same_bits(
    tmp_path: Path, splits: TrainingSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = finished(splits, config_of(), tmp_path / "undisturbed")
    step = Trainer.step

    def press(self: Trainer, seen: SeenBatch) -> float:
        if self.counters.step == 2:
            signal.raise_signal(signal.SIGINT)
        return step(self, seen)

    monkeypatch.setattr(Trainer, "step", press)
    (tmp_path / "pressed").mkdir()
    with pytest.raises(KeyboardInterrupt):
        Trainer(splits, config_of(), tmp_path / "pressed").run()
    monkeypatch.undo()
    resumed = Trainer(splits, config_of(), tmp_path / "pressed")
    resumed.run(resume=True)
    assert read_counters(tmp_path / "pressed" / "checkpoint.safetensors").step > 3
    assert equal(weights_of(resumed), weights_of(undisturbed))


def test_a_finished_run_is_trained_further_with_a_schedule_of_its_own(
    tmp_path: Path, splits: TrainingSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "LOG_EVERY_SECONDS", -1.0)  # a line for every step
    first = finished(splits, config_of(max_epochs=1), tmp_path)
    checkpoint = tmp_path / "checkpoint.safetensors"
    counters = read_counters(checkpoint)
    counters.begin_part()
    write_counters(checkpoint, counters)
    further = Trainer(splits, config_of(max_epochs=3), tmp_path)
    further.run(resume=True)
    assert further.counters.step == 3 * first.counters.step
    lines = [e for e in read_events(tmp_path / "events.jsonl") if e["kind"] == "training"]
    of_part = [event for event in lines if event["step"] > first.counters.step]
    assert [event["progress"] for event in of_part] == pytest.approx(
        [number / len(of_part) for number in range(1, len(of_part) + 1)]
    )
    rates = [event["learning_rate"] for event in of_part]
    assert rates[0] < max(rates) > rates[-1]  # it warms up again, and falls again
    assert max(rates) > 10 * lines[first.counters.step - 1]["learning_rate"]


def test_training_may_start_from_given_weights(tmp_path: Path, splits: TrainingSplits) -> None:
    given = weights_of(Trainer(splits, config_of(seed=3), tmp_path))
    trainer = Trainer(splits, config_of(averaging=0.5), tmp_path, weights=given)
    assert equal(weights_of(trainer), given)


def test_a_run_trains_each_epoch_on_every_query(tmp_path: Path, splits: TrainingSplits) -> None:
    trainer = finished(splits, config_of(targets="one", max_epochs=3), tmp_path)
    num_batches = math.ceil(2 * len(splits.train.facts) / 8)
    assert trainer.counters.step == 3 * num_batches
    assert trainer.counters.epochs_done == 3


def test_validation_uses_a_seeded_sample_of_many_facts(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    valid = splits.valid
    assert len(valid.facts) > 1
    chosen = set()
    for seed in range(4):
        config = config_of(seed=seed, max_valid_facts=1, max_epochs=1)
        trainer = finished(splits, config, tmp_path / f"seed {seed}")
        scorer = Scorer(trainer.model, valid.graph, seed=seed)
        mrr = []
        for fact in valid.facts:
            ranks, _, _ = rank_split(scorer, replace(valid, facts=fact.unsqueeze(0)))
            mrr.append(rank_metrics(ranks.realistic)["mrr"])
        # The figure is that of a single fact, and not always of the same one.
        of_fact = [abs(value - trainer.counters.best_mrr) for value in mrr]
        assert min(of_fact) < 1e-9
        chosen.add(of_fact.index(min(of_fact)))
    assert len(chosen) > 1


def test_selection_never_reads_test_facts(
    tmp_path: Path,
    ring_triples: Sequence[NamedTriple],
    write_triples: Callable[[Path, Sequence[NamedTriple]], Path],
) -> None:
    """Runs on data sets that differ in their test facts alone are the same to the last bit."""
    annotations = inspect.signature(Trainer.__init__).parameters
    assert annotations["splits"].annotation is TrainingSplits
    train, valid = ring_triples[:24], ring_triples[24:28]
    tests = {"right": ring_triples[28:], "wrong": [(t, r, h) for h, r, t in ring_triples[28:]]}
    runs = []
    for name, test in tests.items():
        for part, triples in (("train", train), ("valid", valid), ("test", test)):
            write_triples(tmp_path / name / f"{part}.txt", triples)
        dataset = load_dataset(tmp_path / name)
        runs.append(finished(dataset.for_training(), config_of(), tmp_path / f"run of {name}"))
    assert equal(weights_of(runs[0]), weights_of(runs[1]))
    assert runs[0].counters.best_mrr == runs[1].counters.best_mrr
    records = [read_events(tmp_path / f"run of {name}" / "events.jsonl") for name in tests]
    assert without_clock(records[0]) == without_clock(records[1])


def test_a_part_of_an_epoch_is_a_budget_too(splits: TrainingSplits, tmp_path: Path) -> None:
    trainer = finished(splits, config_of(max_epochs=1.5), tmp_path)
    assert trainer.counters.step == -(-3 * len(trainer.epochs) // 2)
    assert trainer.counters.validated_step == trainer.counters.step
    assert trainer.counters.epochs_done == pytest.approx(1.5, abs=1 / len(trainer.epochs))


def test_the_moving_average_is_validated_and_saved(splits: TrainingSplits, tmp_path: Path) -> None:
    plain = finished(splits, config_of(max_epochs=1), tmp_path / "plain")
    averaged = finished(splits, config_of(max_epochs=1, averaging=0.5), tmp_path / "averaged")
    kept, _ = read_tensors(tmp_path / "averaged" / "checkpoint.safetensors")
    last, _ = read_tensors(tmp_path / "plain" / "checkpoint.safetensors")
    name = next(name for name, _ in plain.model.named_parameters())
    assert torch.equal(kept[f"model.{name}"], last[f"model.{name}"])  # steps are the same
    assert torch.equal(kept[f"best.{name}"], kept[f"average.{name}"])
    assert torch.equal(kept[f"best.{name}"], averaged.model.state_dict()[name])
    assert not torch.equal(kept[f"average.{name}"], kept[f"model.{name}"])


def test_dropped_edges_change_training_and_repeat(
    splits: TrainingSplits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "LOG_EVERY_SECONDS", math.inf)  # a busy machine adds no lines

    def losses(name: str, dropout: float) -> list[float]:
        finished(splits, config_of(max_epochs=1, edge_dropout=dropout), tmp_path / name)
        events = read_events(tmp_path / name / "events.jsonl")
        return [event["loss"] for event in events if event["kind"] == "training"]

    assert losses("a", 0.5) == losses("b", 0.5) != losses("c", 0.0)


def test_a_run_on_partitions_ends_on_the_whole_graph(
    tmp_path: Path, splits: TrainingSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[bool] = []
    step = Trainer.step

    def watched(self: Trainer, seen: SeenBatch) -> float:
        whole.append(seen.graph is self.epochs.whole)
        return step(self, seen)

    monkeypatch.setattr(Trainer, "step", watched)
    finished(splits, config_of(max_epochs=3, region_size=6, whole_graph_share=0.4), tmp_path)
    first = whole.index(True)
    assert not any(whole[:first])
    assert all(whole[first:])
    # Sixteen entities against six: a step costs 8/3, so of the steps a fifth is 0.4 of the work.
    assert 0.15 < 1 - first / len(whole) <= 0.2


def test_validations_are_spread_over_the_work_not_the_steps(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    config = config_of(max_epochs=4, region_size=6, whole_graph_share=0.6, validations_per_epoch=2)
    finished(splits, config, tmp_path)
    events = read_events(tmp_path / "events.jsonl")
    steps = [event["step"] for event in events if event["kind"] == "validation"]
    gaps = [later - earlier for earlier, later in pairwise([0, *steps])]
    assert len(gaps) == 8
    # A step on the whole graph costs 8/3 of one on a partition.
    assert gaps[0] > 2 * gaps[-1] > 0


def test_epochs_are_counted_in_steps_though_partitions_take_fewer(
    tmp_path: Path, splits: TrainingSplits
) -> None:
    trainer = finished(splits, config_of(max_epochs=3, region_size=6), tmp_path)
    events = read_events(tmp_path / "events.jsonl")
    assert [e["epoch"] for e in events if e["kind"] == "validation"] == [0, 1, 2]
    assert trainer.counters.epoch >= 3  # orders of queries drawn
