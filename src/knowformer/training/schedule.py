"""Schedule: the graph and batch of every step, what fraction of the run is done, when it ends.

Work is counted in steps on a partition. A step costs as much as its graph has entities, so one on
the whole graph counts ``whole_graph_cost`` times. A run on partitions spends the last
``whole_graph_share`` of its work on the whole graph; progress, learning rate and validations follow
the work, not the number of steps.

A finished run may be trained further. The extra part has a schedule of its own, from 0 to 1.
"""

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

from knowformer.queries.query import QueryBatch
from knowformer.seeding import generator
from knowformer.training.budget import Budget
from knowformer.training.checkpoint import Counters
from knowformer.training.config import TrainingConfig
from knowformer.training.sampling.epochs import TrainingEpochs, TrainingGraph

Seen = TypeVar("Seen")
See = Callable[[Iterator[tuple[TrainingGraph, QueryBatch]]], Iterator[Seen]]


class Schedule:
    """Walks through a run; its position is in the counters, so a checkpoint holds it."""

    def __init__(
        self,
        config: TrainingConfig,
        counters: Counters,
        budget: Budget,
        *,
        steps_per_epoch: int,
        whole_graph_cost: float = 1.0,
    ) -> None:
        """Plans a run.

        Args:
            config: gives the limits: epochs, patience.
            counters: the run's.
            budget: gives the limit in minutes.
            steps_per_epoch: of an epoch on the whole graph.
            whole_graph_cost: cost of a step on the whole graph relative to one on a partition.
        """
        self._config = config
        self._counters = counters
        self._budget = budget
        self._steps_per_epoch = steps_per_epoch
        self._num_steps = math.ceil(config.epochs * steps_per_epoch)
        self._whole_graph_cost = whole_graph_cost

    def steps(self, epochs: TrainingEpochs, see: See[Seen], *, seed: int) -> Iterator[Seen]:
        """Yields what each step trains on until the run is over; ``advance`` after each.

        Args:
            epochs: gives the batches and their graphs.
            see: turns these into what a step takes; may run ahead.
            seed: of the order.
        """
        while not self.is_over():
            yield from self._rest_of_epoch(epochs, see, seed)

    def _rest_of_epoch(self, epochs: TrainingEpochs, see: See[Seen], seed: int) -> Iterator[Seen]:
        counters = self._counters
        if self._leaves_partitions():  # the run was interrupted after the last partitioned step
            self._begin_next_epoch()
        if not counters.batch_in_epoch:
            counters.epoch_in_regions = self._is_on_partitions()
        order = generator(seed, "order", counters.epoch)
        batches = epochs.batches(
            order, partitioned=counters.epoch_in_regions, skip=counters.batch_in_epoch
        )
        for seen in see(batches):
            yield seen
            if self.is_over():
                return
            if self._leaves_partitions():
                break
        self._begin_next_epoch()

    def advance(self) -> None:
        """Counts a step."""
        self._counters.step += 1
        self._counters.batch_in_epoch += 1

    def _begin_next_epoch(self) -> None:
        self._counters.epoch += 1
        self._counters.batch_in_epoch = 0

    def progress(self) -> float:
        """Returns the fraction of the run that is done, by work or minutes, whichever is more."""
        done = self.work_done(self._counters.step)
        return min(max(done, self._budget.progress(self._counters.part_seconds)), 1.0)

    def seconds_left(self) -> float:
        """Predicts the seconds to the end of the run, with what follows training."""
        counters = self._counters
        return self._budget.seconds_left(self.work_done(counters.step), counters.part_seconds)

    def is_over(self) -> bool:
        """Returns whether work, minutes or patience are exhausted, or the run has finished."""
        counters, patience = self._counters, self._config.patience
        out_of_patience = patience is not None and counters.validations_since_record >= patience
        return counters.finished or out_of_patience or self.progress() >= 1.0

    def is_validation_due(self) -> bool:
        """Returns whether to validate after the last step: at even intervals of work."""
        step = self._counters.step
        is_due = self._validations_due(step) > self._validations_due(step - 1)
        return is_due and self._budget.allows_validation()

    def _validations_due(self, step: int) -> int:
        epochs = self.work_done(step) * self._part_steps / self._steps_per_epoch
        return math.floor(epochs * self._config.validations_per_epoch + 1e-9)

    @property
    def epoch(self) -> int:
        """The epoch of the last step, from 0, counted in steps."""
        return max(math.ceil(self._counters.epochs_done) - 1, 0)

    @property
    def _part_steps(self) -> int:
        """Steps of the current part."""
        return self._num_steps - self._counters.part_step

    def work_done(self, step: int) -> float:
        """Returns the fraction of the current part's work that is done after a step of the run."""
        on_whole, num_steps = self._steps_on_whole_graph(), self._part_steps
        step -= self._counters.part_step
        if num_steps <= 0:
            return 1.0
        if on_whole is None:
            return step / num_steps
        fraction, on_partitions = self._config.whole_graph_share, num_steps - on_whole
        if step <= on_partitions and on_partitions:
            return step * ((1.0 - fraction) if on_whole else 1.0) / on_partitions
        return 1.0 - fraction * (num_steps - step) / on_whole

    def _steps_on_whole_graph(self) -> int | None:
        """Returns how many steps at the end are on the whole graph; None if all cost the same."""
        fraction, cost = self._config.whole_graph_share, self._whole_graph_cost
        if cost <= 1.0 or not fraction:
            return None
        return math.floor(self._part_steps * fraction / (cost * (1.0 - fraction) + fraction))

    def mean_step_cost(self) -> float:
        """Returns the mean cost of a step, where one on a partition costs 1."""
        fraction, cost = self._config.whole_graph_share, self._whole_graph_cost
        return cost / (cost * (1.0 - fraction) + fraction)

    def _is_on_partitions(self) -> bool:
        """Returns whether an epoch that starts now is on partitions, if there are any."""
        return self.progress() < 1.0 - self._config.whole_graph_share

    def _leaves_partitions(self) -> bool:
        """Returns whether the current epoch ends early, as the rest is on the whole graph."""
        counters = self._counters
        begun = counters.batch_in_epoch > 0 and counters.epoch_in_regions
        return begun and not self._is_on_partitions()
