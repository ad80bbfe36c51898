"""The training loop: batch, scores, loss, step, log, validate, save.

Randomness at step n depends on (seed, n) alone, so a run that is killed and resumed ends with the
same bits as one that was left alone (given the same settings and no time budget), on any number of
threads.
"""

import math
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from knowformer.data.dataset import Split, TrainingSplits
from knowformer.data.holdout import set_region_apart, set_relations_apart
from knowformer.errors import NonFiniteLossError
from knowformer.evaluation.evaluate import rank_split
from knowformer.evaluation.metrics import rank_metrics
from knowformer.graph.inverse import num_with_inverses
from knowformer.kernels.interface import QueryView
from knowformer.model.knowformer import KnowFormer, initialize, ordered_parameters
from knowformer.model.noise import identity_noise
from knowformer.model.micro_batches import micro_batch_size
from knowformer.model.run import run
from knowformer.queries.query import QueryBatch
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import derive_seed, generator
from knowformer.system.environment import available_memory
from knowformer.system.workers import shared_workers, torch_on_one_core
from knowformer.training.checkpoint import Counters, load_checkpoint, save_checkpoint
from knowformer.training.config import RunConfig
from knowformer.training.events import Event, EventLog
from knowformer.training.gradients import MicroBatch, MicroBatchLoss, accumulate_gradients
from knowformer.training.losses import binary_loss, cross_entropy_loss
from knowformer.training.optimizer import build_optimizer, learning_rate
from knowformer.training.plan import (
    FORWARD_SHARE,
    Plan,
    choose_batch_size,
    predicted_memory,
)
from knowformer.training.sampling.edge_removal import visible_edges
from knowformer.training.sampling.epochs import TrainingGraph, TrainingPasses
from knowformer.training.sampling.negatives import sample_negatives
from knowformer.training.sampling.relation_permutation import swap_relations

LOG_EVERY_SECONDS = 2.0


class Trainer:
    """A run in progress: model, optimiser, counters and the best weights so far."""

    def __init__(
        self,
        splits: TrainingSplits,
        config: RunConfig,
        folder: Path,
        *,
        on_event: Callable[[Event], None] | None = None,
        on_best: Callable[[KnowFormer, Event], None] | None = None,
        on_validated: Callable[[KnowFormer, Event], None] | None = None,
    ) -> None:
        """Prepares a run.

        Args:
            splits: training and validation facts; there is no way to reach test facts from here.
            config: the run's settings.
            folder: gets ``checkpoint.safetensors`` and ``events.jsonl``.
            on_event: called with each event after it is recorded.
            on_best: called with the model whenever its weights are kept.
            on_validated: called with the model after every validation.
        """
        splits = _with_validation_apart(splits, config)
        graph = splits.train.graph
        self.splits = splits
        self.config = config
        self.model = KnowFormer(
            config.model,
            num_with_inverses(len(splits.train.graph.relations)),
            backend=config.backend,
        )
        initialize(self.model, generator=generator(config.seed, "init"))
        self.batch_size = config.training.batch_size or choose_batch_size(config, graph)
        self.counters = Counters()
        self.best_weights: dict[str, Tensor] = {}
        self._average = deepcopy(self.model) if config.training.averaging else self.model
        self._optimizer = build_optimizer(self.model, config.training)
        self._checkpoint_path = folder / "checkpoint.safetensors"
        self._events_path = folder / "events.jsonl"
        self._on_event = on_event
        self._on_best = on_best
        self._on_validated = on_validated
        self.passes = TrainingPasses(
            splits.train,
            targets=config.training.targets,
            batch_size=self.batch_size,
            region_size=config.training.region_size,
        )
        self.counters.steps_per_epoch = len(self.passes)
        self._parameters = ordered_parameters(self.model)
        self._workers = shared_workers(config.threads)
        self._valid = _sample_facts(splits.valid, config)

    @torch_on_one_core()
    def run(self, *, resume: bool = False) -> KnowFormer:
        """Trains to the end and returns the model with its best weights."""
        if resume:
            kept, self.counters = load_checkpoint(
                self._checkpoint_path, self.model, self._optimizer
            )
            self.best_weights = kept.get("best", {})
            self._average.load_state_dict(kept.get("average", self.model.state_dict()))
        self._log = EventLog(self._events_path, keep_bytes=self.counters.event_bytes)
        self._started = time.perf_counter() - self.counters.elapsed_seconds
        self._saved_at = self._logged_at = time.perf_counter()
        self._queries_since_log = 0
        while not self._is_over():
            self._run_epoch()
        if not self.counters.finished:
            if self.counters.validated_step != self.counters.step:
                self._validate()
            self.counters.finished = True
            self._save()
        self.model.load_state_dict(self.best_weights)
        return self.model

    def progress(self) -> float:
        """Returns the share of the run that is over, by work or by minutes."""
        training = self.config.training
        share = self._work_done(self.counters.step)
        if training.max_minutes is not None:
            share = max(share, self._elapsed() / (60.0 * training.max_minutes))
        return min(share, 1.0)

    def _work_done(self, step: int) -> float:
        share = self.config.training.whole_graph_share
        return self.passes.work_done(step, self._num_steps(), share)

    def _num_steps(self) -> int:
        return math.ceil(self.config.training.max_epochs * len(self.passes))

    def _validations_due(self, step: int) -> int:
        """Returns how many there should be after a step: evenly over the work, not the steps."""
        epochs = self._work_done(step) * self._num_steps() / len(self.passes)
        return math.floor(epochs * self.config.training.validations_per_epoch + 1e-9)

    def _in_regions(self) -> bool:
        """Returns whether an epoch that starts now is trained on regions, if there are any."""
        return self.progress() < 1.0 - self.config.training.whole_graph_share

    def _leaves_regions(self) -> bool:
        """Returns whether the present epoch ends early, as the rest is on the whole graph."""
        counters = self.counters
        return counters.batch_in_epoch > 0 and counters.epoch_in_regions and not self._in_regions()

    def _is_over(self) -> bool:
        patience = self.config.training.patience
        tired = patience is not None and self.counters.validations_since_record >= patience
        return self.counters.finished or tired or self.progress() >= 1.0

    def _run_epoch(self) -> None:
        counters = self.counters
        if self._leaves_regions():  # a run that was cut off between two steps
            counters.epoch, counters.batch_in_epoch = counters.epoch + 1, 0
        if not counters.batch_in_epoch:
            counters.epoch_in_regions = self._in_regions()
        order = generator(self.config.seed, "order", counters.epoch)
        for graph, batch in self.passes.epoch(
            order, in_regions=counters.epoch_in_regions, skip=counters.batch_in_epoch
        ):
            loss = self.step(graph, batch)
            counters.step += 1
            counters.batch_in_epoch += 1
            due = self._validations_due(counters.step) > self._validations_due(counters.step - 1)
            self._log_step(loss, len(batch), always=due)
            if due:
                self._validate()
            self._save_if_due(force=due)
            if self._is_over():
                return
            if self._leaves_regions():
                break
        counters.epoch, counters.batch_in_epoch = counters.epoch + 1, 0

    @torch_on_one_core()
    def plan(self) -> Plan:
        """Says what the run will take; times a step without taking it."""
        config, graph = self.config, self.splits.train.graph
        part, batch = next(self.passes.epoch(generator(config.seed, "order", 0)))
        seconds = 0.0
        for _ in range(2):  # the first one compiles
            started = time.perf_counter()
            self._differentiate(part, batch)
            seconds = time.perf_counter() - started
        self._optimizer.zero_grad()
        ranked = 2 * len(self._valid.facts) * config.training.validations_per_epoch
        # All counted as queries of the part that was timed, which may be a region.
        trained = self.passes.num_queries * self.passes.mean_cost(config.training.whole_graph_share)
        queries = trained + FORWARD_SHARE * ranked * self.passes.whole_graph_cost
        return Plan(
            batch_size=self.batch_size,
            slice_size=micro_batch_size(
                self.batch_size, part.adjacency.num_entities, config.model.hidden_dim
            ),
            threads=self._workers.threads,
            memory_bytes=predicted_memory(config, graph, self.batch_size),
            available_bytes=available_memory(),
            num_queries=self.passes.num_queries,
            seconds_per_epoch=seconds * queries / len(batch),
        )

    def _differentiate(self, graph: TrainingGraph, batch: QueryBatch) -> float:
        """Fills the gradients and returns the loss."""
        config, training = self.config, self.config.training
        self._optimizer.zero_grad()
        edges = visible_edges(
            graph.adjacency,
            batch,
            hide=training.hide,
            dropout=training.edge_dropout,
            generator=generator(config.seed, "edges", self.counters.step),
        )
        batch = batch.by_relation()
        return accumulate_gradients(
            self.model,
            QueryView.whole(edges, batch.heads),
            batch.relations,
            identity_noise(
                config.model, graph.entity_keys, seed=config.seed, draw=self.counters.step
            ),
            self._micro_batch_loss(graph, batch),
            size=micro_batch_size(
                self.batch_size, graph.adjacency.num_entities, config.model.hidden_dim
            ),
            workers=self._workers,
            permutation=swap_relations(
                graph.adjacency.num_relations,
                training.relation_swaps,
                generator=generator(config.seed, "relations", self.counters.step),
            ),
        )

    def step(self, graph: TrainingGraph, batch: QueryBatch) -> float:
        """One update of the weights; returns the loss before it."""
        training = self.config.training
        value = self._differentiate(graph, batch)
        if not math.isfinite(value):
            raise NonFiniteLossError(step=self.counters.step, loss=value, batch=batch.describe())
        norm = torch.nn.utils.clip_grad_norm_(
            self._parameters, training.gradient_clip, foreach=True
        )
        if not torch.isfinite(norm):
            raise NonFiniteLossError(
                step=self.counters.step,
                loss=value,
                batch=batch.describe(),
                gradient_norm=norm.item(),
            )
        rate = learning_rate(training, step=self.counters.step, progress=self.progress())
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._follow_average()
        return value

    def _follow_average(self) -> None:
        """Moves the averaged weights a little towards the present ones, at first in great steps."""
        if self._average is self.model:
            return
        step = self.counters.step
        decay = min(self.config.training.averaging, (1 + step) / (10 + step))
        with torch.no_grad():
            pairs = zip(self._average.parameters(), self.model.parameters(), strict=True)
            for average, now in pairs:
                average.lerp_(now, 1.0 - decay)

    def _micro_batch_loss(self, graph: TrainingGraph, batch: QueryBatch) -> MicroBatchLoss:
        """Returns what a micro-batch adds to the batch's loss."""
        seed, step, training = self.config.seed, self.counters.step, self.config.training

        def loss(part: MicroBatch) -> Tensor:
            dropout = np.random.SFC64(derive_seed(seed, "dropout", step, part.number))
            scores = run(
                part.weights, part.view, part.vectors, self.model.backend,
                first=part.first_states, dropout=np.random.Generator(dropout),
            ).view(len(part.view), -1)  # fmt: skip
            queries = batch.slice(part.first, part.last)
            known = graph.known.mask(queries.heads, queries.relations)
            if training.loss == "cross_entropy":
                return cross_entropy_loss(
                    scores, known, queries.rows, queries.tails, num_facts=len(batch.tails)
                )
            random = generator(seed, "negatives", step, part.number)
            return binary_loss(
                scores,
                known,
                queries.rows,
                queries.tails,
                num_queries=len(batch),
                negatives=sample_negatives(known, training.num_negatives, generator=random),
                adversarial_temperature=training.adversarial_temperature,
            )

        return loss

    def _validate(self) -> None:
        """Ranks validation facts; keeps the weights unless they are clearly worse than before."""
        scorer = Scorer(
            self._average, self._valid.graph, seed=self.config.seed, threads=self.config.threads
        )
        ranks, _, _ = rank_split(scorer, self._valid)
        metrics = rank_metrics(ranks.realistic)
        counters = self.counters
        reciprocal = 1.0 / ranks.realistic
        is_record = metrics["mrr"] > counters.record_mrr
        is_best = is_record or not _clearly_worse(reciprocal, counters.record_reciprocal_ranks)
        event: Event = {
            "kind": "validation",
            "step": counters.step,
            "epoch": counters.epoch_of_step,
            "valid_mrr": metrics["mrr"],
            "valid_hits@1": metrics["hits@1"],
            "valid_hits@10": metrics["hits@10"],
            "best": is_best,
        }
        counters.validated_step = counters.step
        counters.validations_since_record = (
            0 if is_record else counters.validations_since_record + 1
        )
        if is_record:
            counters.record_mrr = metrics["mrr"]
            counters.record_reciprocal_ranks = reciprocal.tolist()
        if is_best:
            counters.best_mrr, counters.best_step = metrics["mrr"], counters.step
            self.best_weights = {k: v.clone() for k, v in self._average.state_dict().items()}
        self._record(event)
        if is_best and self._on_best is not None:
            self._on_best(self._average, event)
        if self._on_validated is not None:
            self._on_validated(self._average, event)

    def _log_step(self, loss: float, num_queries: int, *, always: bool) -> None:
        self.counters.recent_losses.append(loss)
        self._queries_since_log += num_queries
        seconds = time.perf_counter() - self._logged_at
        if seconds < LOG_EVERY_SECONDS and not always:
            return
        losses = self.counters.recent_losses
        done = self.progress()
        self._record(
            {
                "kind": "training",
                "step": self.counters.step,
                "epoch": self.counters.epoch_of_step,
                "loss": sum(losses) / len(losses),
                "queries_per_second": self._queries_since_log / max(seconds, 1e-9),
                "learning_rate": self._optimizer.param_groups[0]["lr"],
                "progress": done,
                "seconds_left": self._elapsed() * (1.0 - done) / max(done, 1e-9),
            }
        )
        self.counters.recent_losses = []
        self._queries_since_log = 0
        self._logged_at = time.perf_counter()

    def _record(self, event: Event) -> None:
        event = {**event, "elapsed_seconds": round(self._elapsed(), 3)}
        self._log.append(event)
        self.counters.event_bytes = self._log.num_bytes
        if self._on_event is not None:
            self._on_event(event)

    def _elapsed(self) -> float:
        return time.perf_counter() - self._started

    def _save_if_due(self, *, force: bool) -> None:
        minutes = (time.perf_counter() - self._saved_at) / 60.0
        if force or minutes >= self.config.training.checkpoint_minutes:
            self._save()

    def _save(self) -> None:
        self.counters.elapsed_seconds = self._elapsed()
        kept = {"best": self.best_weights}
        if self._average is not self.model:
            kept["average"] = self._average.state_dict()
        save_checkpoint(self._checkpoint_path, self.model, self._optimizer, kept, self.counters)
        self._saved_at = time.perf_counter()


def _with_validation_apart(splits: TrainingSplits, config: RunConfig) -> TrainingSplits:
    training = config.training
    if training.validation_region:
        draw = generator(config.seed, "validation_region")
        splits = set_region_apart(splits, training.validation_region, generator=draw)
    if training.validation_relations:
        draw = generator(config.seed, "validation_relations")
        splits = set_relations_apart(splits, training.validation_relations, generator=draw)
    return splits


def _sample_facts(split: Split, config: RunConfig) -> Split:
    """Returns the split with at most ``max_valid_facts`` facts, chosen by the seed."""
    limit = config.training.max_valid_facts
    if len(split.facts) <= limit:
        return split
    order = torch.randperm(len(split.facts), generator=generator(config.seed, "valid_facts"))
    return replace(split, facts=split.facts[order[:limit].sort().values])


def _clearly_worse(reciprocal_ranks: Float[Tensor, " F"], record: list[float]) -> bool:
    """The one-standard-error rule, fact by fact against the best validation ever.

    A validation MRR wavers more between epochs than its mean changes, so the highest one is often
    luck. Among weights that cannot be told from the best, the latest have learned the longest.
    """
    gaps = torch.tensor(record, dtype=torch.double) - reciprocal_ranks
    if len(gaps) < 2:
        return gaps.sum().item() > 0
    return gaps.mean().item() > gaps.std().item() / math.sqrt(len(gaps))
