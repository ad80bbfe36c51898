"""Runs what is missing: each (experiment, seed) once, resumable, within a budget, in any order."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from knowformer.data.loading import load_dataset
from knowformer.errors import KnowformerError
from knowformer.system.environment import describe_environment
from knowformer.system.workers import available_cores
from knowformer.training.events import Event
from knowformer_lab.experiment import Experiment
from knowformer_lab.memory import peak_memory_mib, reset_peak_memory
from knowformer_lab.results import Result, ResultStore, dataset_checksum
from knowformer_lab.studies.attention import find_questions
from knowformer_lab.studies.kinds import STUDIES, Measured, Progress
from knowformer_lab.studies.theory import measure_expressivity
from knowformer_lab.trained_run import TrainedRun, run_folder, trained_run
from knowformer_lab.validations import ValidationWeights

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """One experiment under one seed."""

    experiment: Experiment
    seed: int


@dataclass(frozen=True)
class Watcher:
    """How someone follows a task: each training event, and progress of what comes after."""

    on_event: Callable[[Event], None] | None = None
    on_progress: Progress | None = None


Watch = Callable[[Task, int, int], AbstractContextManager[Watcher]]
"""Given a task, its number and how many there are: something to run it in."""


@dataclass(frozen=True)
class Outcome:
    """What became of a task."""

    task: Task
    state: Literal["done", "out of time", "busy", "failed"]
    result: Result | None = None
    error: KnowformerError | None = None


class _OutOfTimeError(Exception):
    """The budget of the whole command is spent; the training's checkpoint stays."""


@dataclass(frozen=True)
class Runner:
    """Everything that tasks have in common."""

    store: ResultStore
    out: Path
    """Holds run folders."""
    experiments: Mapping[str, Experiment]
    """All there are: they tell which training's weights are still needed."""
    threads: int = 0

    def missing(self, chosen: Iterable[Experiment], seeds: list[int] | None = None) -> list[Task]:
        """Returns the tasks without a result; seeds may name others than the experiment's own."""
        return [
            Task(experiment, seed)
            for experiment in chosen
            for seed in (seeds if seeds is not None else experiment.seeds)
            if self.store.current(experiment, seed) is None
        ]

    def run(self, tasks: list[Task], *, watch: Watch, max_minutes: float | None) -> list[Outcome]:
        """Runs tasks one after the other; one that fails does not keep the others from running."""
        deadline = None if max_minutes is None else time.monotonic() + 60 * max_minutes
        outcomes: list[Outcome] = []
        for number, task in enumerate(tasks, start=1):
            if deadline is not None and time.monotonic() >= deadline:
                outcomes.append(Outcome(task, "out of time"))
                continue
            with watch(task, number, len(tasks)) as watcher:
                outcomes.append(self._attempt(task, watcher, deadline))
        return outcomes

    def _attempt(self, task: Task, watcher: Watcher, deadline: float | None) -> Outcome:
        def on_event(event: Event) -> None:
            if watcher.on_event is not None:
                watcher.on_event(event)
            if deadline is not None and time.monotonic() >= deadline:
                raise _OutOfTimeError

        try:
            return Outcome(task, "done", self._run_locked(task, on_event, watcher.on_progress))
        except _OutOfTimeError:
            return Outcome(task, "out of time")
        except Timeout:
            return Outcome(task, "busy")
        except KnowformerError as error:
            return Outcome(task, "failed", error=error)

    def _run_locked(
        self, task: Task, on_event: Callable[[Event], None], progress: Progress | None
    ) -> Result:
        """Runs a task unless another process is at its training."""
        experiment, seed = task.experiment, task.seed
        reset_peak_memory()
        if experiment.dataset is None:
            started = time.perf_counter()
            study = measure_expressivity(seed=seed, num_graphs=experiment.study.num_graphs)
            return self._store(task, None, Measured(study=study), time.perf_counter() - started)
        config = experiment.config(seed, threads=self.threads)
        if experiment.study.questions:
            # A misspelt name is refused before hours of training, not after.
            find_questions(load_dataset(experiment.dataset, seed=seed), experiment.study.questions)
        keep = self._needs_validations(task)
        folder = run_folder(self.out, experiment, config, keep=keep)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock"), timeout=0):
            # Someone else may have ended it while this process was at another task.
            stored = self.store.current(experiment, seed)
            if stored is not None:
                return stored
            run = trained_run(folder, experiment.dataset, config, keep=keep, on_event=on_event)
            started = time.perf_counter()
            measured = STUDIES[experiment.kind](experiment, run, progress)
            result = self._store(task, run, measured, time.perf_counter() - started)
            if not self._needs_validations(task):
                ValidationWeights(folder).remove()
            return result

    def _needs_validations(self, task: Task) -> bool:
        """Whether a selection study of this training is still to come."""
        wanted = task.experiment.config(task.seed)
        return any(
            other.kind == "selection"
            and other.dataset == task.experiment.dataset
            and (other is task.experiment or task.seed in other.seeds)
            and other.config(task.seed) == wanted
            and self.store.current(other, task.seed) is None
            for other in [*self.experiments.values(), task.experiment]
        )

    def _store(
        self, task: Task, run: TrainedRun | None, measured: Measured, seconds: float
    ) -> Result:
        experiment, seed = task.experiment, task.seed
        command = experiment.command(seed)
        evaluation = measured.evaluation
        if evaluation is not None:
            evaluation = evaluation.model_copy(update={"command": command})
        result = Result(
            experiment=experiment.name,
            kind=experiment.kind,
            seed=seed,
            dataset=experiment.dataset,
            dataset_sha256=dataset_checksum(run.reasoner.dataset) if run else None,
            published=experiment.published,
            training=run.record if run else None,
            evaluation=evaluation,
            study=measured.study,
            measuring_minutes=round(seconds / 60, 3),
            peak_memory_mib=peak_memory_mib(),
            threads=self.threads or available_cores(),
            config=experiment.config(seed).model_dump(mode="json", exclude={"threads"}),
            options=experiment.study,
            environment=describe_environment(),
            command=command,
            finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        _logger.debug("Stored %s", self.store.write(experiment, result))
        return result
