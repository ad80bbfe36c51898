"""The training loop: batch, step, log, validate, save.

Randomness at step n depends on (seed, n) alone, so a run that is killed and resumed ends with the
same bits as one that was left alone (given the same settings and no time budget), on any number of
threads and processes. All processes go through this loop together; one of them writes files.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from knowformer.data.dataset import Split, TrainingSplits
from knowformer.evaluation.evaluate import rank_split
from knowformer.evaluation.link_prediction import score_links, separations
from knowformer.evaluation.metrics import rank_metrics
from knowformer.model.knowformer import KnowFormer
from knowformer.model.micro_batches import micro_batch_size
from knowformer.queries.query import QueryBatch
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import generator
from knowformer.system.environment import available_memory
from knowformer.system.workers import shared_workers, torch_on_one_core
from knowformer.training.budget import Budget
from knowformer.training.checkpoint import Counters, load_checkpoint, save_checkpoint
from knowformer.training.clock import Clock
from knowformer.training.config import RunConfig
from knowformer.training.defaults import choose_batch_size
from knowformer.training.distributed import Processes
from knowformer.training.events import OnEvent, ValidationEvent, work_event
from knowformer.training.optimizer import build_optimizer
from knowformer.training.plan import FORWARD_COST, Plan, predicted_memory
from knowformer.training.recorder import Recorder
from knowformer.training.sampling.epochs import TrainingEpochs, TrainingGraph
from knowformer.training.sampling.visibility import SeenBatch
from knowformer.training.schedule import Schedule
from knowformer.training.selection import Selection
from knowformer.training.step import TrainingStep
from knowformer.training.stopping import StopRequest
from knowformer.training.validation import sample_validation

LOG_EVERY_SECONDS = 2.0
PROBE_FACTS = 4  # validation facts that tell how long a question takes

_logger = logging.getLogger(__name__)

OnValidation = Callable[[KnowFormer, ValidationEvent], None]


class Trainer:
    """A run in progress."""

    def __init__(
        self,
        splits: TrainingSplits,
        config: RunConfig,
        folder: Path,
        *,
        on_event: OnEvent | None = None,
        on_best: OnValidation | None = None,
        on_validated: OnValidation | None = None,
        stop: StopRequest | None = None,
        clock: Clock | None = None,
        questions_after: int = 0,
        weights: Mapping[str, Tensor] | None = None,
        processes: Processes | None = None,
    ) -> None:
        """Prepares a run.

        Args:
            splits: training and validation facts, the validation holdout already made
                (``data.holdout.hold_out``); test facts cannot be reached from here.
            config: the run's settings.
            folder: gets ``checkpoint.safetensors`` and ``events.jsonl``.
            on_event: called with each event after it is recorded.
            on_best: called with the model whenever it is the best checkpoint so far.
            on_validated: called with the model after every validation.
            stop: what callbacks ask to end the run by.
            clock: source of wall time; the budget in minutes counts from its start.
            questions_after: that will be scored after training, which the budget keeps time for.
            weights: to start from, instead of random ones.
            processes: that train together; None: this one alone.
        """
        training, graph = config.training, splits.train.graph
        self.splits = splits
        self.config = config
        self.model = KnowFormer.initialized(
            config.model, graph.relations, seed=config.seed, backend=config.backend
        )
        if weights is not None:
            self.model.load_state_dict(dict(weights))
        self.batch_size = training.batch_size or choose_batch_size(config, graph)
        self.epochs = TrainingEpochs(
            splits.train,
            targets="pairs" if training.loss == "pairs" else training.targets,
            batch_size=self.batch_size,
            partition_size=training.region_size,
            carved_size=training.carved_size,
        )
        self.counters = Counters(steps_per_epoch=len(self.epochs))
        self._processes = processes or Processes()
        self.clock = self._processes.clock(clock or Clock())
        self.budget = Budget(training.max_minutes, self.clock, questions_after=questions_after)
        self.schedule = Schedule(
            training,
            self.counters,
            self.budget,
            steps_per_epoch=len(self.epochs),
            whole_graph_cost=self.epochs.whole_graph_cost,
        )
        self.selection = Selection(self.counters)
        self._optimizer = build_optimizer(self.model, training)
        self._threads = self._processes.threads(config.threads)
        self._workers = shared_workers(self._threads)
        self._step = TrainingStep(
            self.model,
            self._optimizer,
            config,
            self._processes.sharing(self._workers),
            batch_size=self.batch_size,
        )
        self.valid = sample_validation(splits.valid, config)
        """The facts that select weights."""
        self._folder = folder
        self._on_event = on_event
        self._on_best = on_best
        self._on_validated = on_validated
        self._stop = stop or StopRequest()
        self._saved_at = 0.0
        self._is_prepared = False

    @torch_on_one_core()
    def prepare(self, *, resume: bool = False) -> None:
        """Restores the last checkpoint, if asked to, and chooses the facts that select weights."""
        if resume:
            self._restore()
        self.clock.add(self.counters.elapsed_seconds)
        self.clock.tick()
        self._saved_at = self.clock.elapsed()
        self._choose_validation_facts()
        self._is_prepared = True

    @torch_on_one_core()
    def run(self, *, resume: bool = False) -> KnowFormer:
        """Trains to the end and returns the model with the weights of the best checkpoint.

        Args:
            resume: from the last checkpoint, unless ``prepare`` was told.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; what was trained is in the checkpoint.
        """
        if not self._is_prepared:
            self.prepare(resume=resume)
        counters = self.counters
        self.clock.tick()
        if counters.step == counters.part_step:
            counters.part_seconds = self.clock.elapsed()  # schedules begin with the first step
        recorder = Recorder(
            self._folder / "events.jsonl", counters, self.clock, on_event=self._on_event
        )
        steps = self.schedule.steps(self.epochs, self._see_ahead, seed=self.config.seed)
        with self._processes.interrupts() as is_interrupted:
            for seen in steps:
                self._take_step(seen, recorder)
                if self._processes.agree(is_interrupted()):
                    self._save()
                    raise KeyboardInterrupt
                if self._processes.agree(self._stop.reason is not None):
                    break
        if not counters.finished:
            if counters.validated_step != counters.step:
                self._validate(recorder)
            counters.finished, counters.stopped = True, self._stop.reason
            if counters.stopped is not None:
                recorder.record_stop(counters.stopped, epoch=self.schedule.epoch)
            self._save()
        self.clock.release()
        self.model.load_state_dict(self.selection.best_weights)
        return self.model

    def _take_step(self, seen: SeenBatch, recorder: Recorder) -> None:
        """Takes a step, and records, validates and saves when it is time to."""
        started = self.clock.elapsed()
        loss = self.step(seen)
        self.clock.tick()
        self.budget.measured_step(self.clock.elapsed() - started)
        self.schedule.advance()
        recorder.add_step(loss, len(seen.batch))
        due = self.schedule.is_validation_due()
        if due or recorder.seconds_pending >= LOG_EVERY_SECONDS:
            self._record_training(recorder)
        if due:
            self._validate(recorder)
        if due or self._is_checkpoint_due():
            self._save()

    def step(self, seen: SeenBatch) -> float:
        """Updates the weights once and returns the loss before."""
        return self._step(
            seen,
            step=self.counters.step,
            progress=self.schedule.progress(),
            schedule_start=self.counters.part_step,
        )

    def see(self, graph: TrainingGraph, batch: QueryBatch) -> SeenBatch:
        """Returns what the queries of the next step see."""
        return self._step.see(graph, batch, self.counters.step)

    def _see_ahead(
        self, batches: Iterator[tuple[TrainingGraph, QueryBatch]]
    ) -> Iterator[SeenBatch]:
        """Yields what the queries of each step see, made while the step before it runs."""
        first = self.counters.step

        def see(numbered: tuple[int, tuple[TrainingGraph, QueryBatch]]) -> SeenBatch:
            number, (graph, batch) = numbered
            return self._step.see(graph, batch, first + number)

        return self._workers.ahead(see, enumerate(batches))

    def _record_training(self, recorder: Recorder) -> None:
        recorder.record_training(
            epoch=self.schedule.epoch,
            learning_rate=self._step.learning_rate,
            progress=self.schedule.progress(),
            seconds_left=self.schedule.seconds_left(),
        )

    def _choose_validation_facts(self) -> None:
        """Takes as many validation facts as the budget allows, the same ones in every process."""
        counters = self.counters
        if self.budget.is_limited and not counters.finished:
            few = sample_validation(self.splits.valid, self.config, limit=PROBE_FACTS)
            for _ in range(2):  # the first one compiles
                started = self.clock.elapsed()
                _, num_queries = self._rank(few)
                self.clock.tick()
                self.budget.measured_queries(self.clock.elapsed() - started, num_queries)
            if counters.validated_step < 0:  # later ones are compared with the first, fact by fact
                counters.num_valid_facts = self.budget.affordable_facts(len(self.valid.facts))
        if counters.num_valid_facts:
            wanted = len(self.valid.facts)
            limit = counters.num_valid_facts
            self.valid = sample_validation(self.splits.valid, self.config, limit=limit)
            if len(self.valid.facts) < wanted:
                _logger.info(
                    "A validation asks %s of %s facts, to keep within `training.max_minutes`.",
                    f"{len(self.valid.facts):,}",
                    f"{wanted:,}",
                )
        self.budget.expect_validation(len(self.valid.facts))

    def _rank(self, split: Split) -> tuple[Float[Tensor, " F"], int]:
        """Returns the ranks of a split's facts, and how many queries they took."""

        def tell(done: int, total: int) -> None:
            if self._on_event is not None:
                self._on_event(work_event("validating", done, total))

        imap = self._processes.in_turn.imap
        ranks, _, num_queries = rank_split(self._scorer(split), split, progress=tell, imap=imap)
        return ranks.realistic, num_queries

    def _scorer(self, split: Split) -> Scorer:
        return Scorer(self._step.ema, split.graph, seed=self.config.seed, threads=self._threads)

    def _separate(self, split: Split) -> Float[Tensor, " F"] | None:
        """Returns how far facts score above unlinked pairs, in a run that learns to."""
        if self.config.training.loss != "pairs":
            return None
        positives, negatives = score_links(self._scorer(split), split, seed=self.config.seed)
        return separations(positives, negatives) if len(negatives) else None

    def _validate(self, recorder: Recorder) -> None:
        """Ranks the validation facts and selects the best checkpoint."""
        model, started = self._step.ema, self.clock.elapsed()
        self._processes.check_same(model.state_dict())
        ranks, num_queries = self._rank(self.valid)
        of_links = self._separate(self.valid)
        self.clock.tick()
        self.budget.measured_validation(self.clock.elapsed() - started, num_queries)
        is_best = self.selection.add(ranks, model.state_dict(), separations=of_links)
        event = recorder.record_validation(
            rank_metrics(ranks),
            epoch=self.schedule.epoch,
            is_best=is_best,
            auroc=None if of_links is None else of_links.mean().item(),
        )
        if is_best and self._on_best is not None:
            self._on_best(model, event)
        if self._on_validated is not None:
            self._on_validated(model, event)

    def _is_checkpoint_due(self) -> bool:
        minutes = (self.clock.elapsed() - self._saved_at) / 60.0
        return minutes >= self.config.training.checkpoint_minutes

    def _save(self) -> None:
        self.counters.elapsed_seconds = self.clock.elapsed()
        others = {"best": self.selection.best_weights}
        if self._step.ema is not self.model:
            others["average"] = self._step.ema.state_dict()
        path, started = self._folder / "checkpoint.safetensors", self.clock.elapsed()
        save = self._processes.by_leader(save_checkpoint)
        save(path, self.model, self._optimizer, others, self.counters)
        self.clock.tick()
        self._saved_at = self.clock.elapsed()
        self.budget.measured_saving(self._saved_at - started)

    def _restore(self) -> None:
        path = self._folder / "checkpoint.safetensors"
        others = load_checkpoint(path, self.model, self._optimizer, self.counters)
        self.selection.best_weights = others.get("best", {})
        self._step.ema.load_state_dict(others.get("average", self.model.state_dict()))

    @torch_on_one_core()
    def plan(self) -> Plan:
        """Estimates memory and time per epoch by timing one backward pass."""
        config, num_queries = self.config, self.epochs.num_queries
        graph, batch = next(self.epochs.batches(generator(config.seed, "order", 0)))
        seconds = 0.0
        for _ in range(2):  # the first one compiles
            started = self.clock.elapsed()
            seen = self._step.see(graph, batch, 0)
            if len(seen.batch):
                self._step.differentiate(seen, step=0)
            seconds = self.clock.elapsed() - started
        self._optimizer.zero_grad()
        validated = 2 * len(self.valid.facts) * config.training.validations_per_epoch
        # Work is in queries trained on the graph that was timed, which may be a partition.
        work = num_queries * self.schedule.mean_step_cost()
        work += FORWARD_COST * validated * self.epochs.whole_graph_cost
        return Plan(
            batch_size=self.batch_size,
            micro_batch_size=micro_batch_size(
                self.batch_size,
                config.model.num_seen(graph.adjacency.num_entities),
                config.model.hidden_dim,
            ),
            threads=self._workers.threads,
            memory_bytes=predicted_memory(config, self.splits.train.graph, self.batch_size),
            available_bytes=available_memory(),
            num_queries=num_queries,
            seconds_per_epoch=seconds * work / len(batch),
            num_entities=graph.adjacency.num_entities,
            num_seen=config.model.num_seen(graph.adjacency.num_entities),
        )
