"""``train``: makes a run folder, or goes on with one, and returns a reasoner on it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from knowformer.calibration.calibrate import calibrate_model
from knowformer.calibration.calibration import Calibration
from knowformer.calibration.relation_fit import num_relation_questions
from knowformer.calibration.sample import MIN_QUERIES, num_questions
from knowformer.data.dataset import Dataset, GraphSource
from knowformer.data.loading import catalogue_name, load_dataset
from knowformer.errors import BundleError, ConfigError, DataError
from knowformer.evaluation.baselines.comparison import compare
from knowformer.evaluation.baselines.ranking import Baseline, rank_baselines
from knowformer.evaluation.ranks import Ranks
from knowformer.graph.inverse import is_inverse, with_inverse_facts
from knowformer.kernels.interface import select_backend
from knowformer.model.knowformer import KnowFormer
from knowformer.plots.learning_curve import can_draw, draw_learning_curve
from knowformer.reasoner import Reasoner
from knowformer.runs.continuing import continue_run
from knowformer.runs.fine_tuning import inherited_settings, initial_weights
from knowformer.runs.folder import (
    CHECKPOINT_FILE,
    Bundle,
    InitialWeights,
    check_resumable,
    holds_run,
    load_calibration,
    load_config,
    load_initial_weights,
    load_run_dataset,
    read_metrics,
    save_calibration,
    save_weights,
    sole_trainer,
    start_run,
    update_metrics,
)
from knowformer.runs.following import follow_run, send_result, send_run
from knowformer.runs.shipped import SHIPPED, SHIPPED_FOLDER
from knowformer.storage.atomic_files import remove_partial_files
from knowformer.training.budget import Budget
from knowformer.training.checkpoint import read_counters
from knowformer.training.clock import Clock
from knowformer.training.config import RunConfig
from knowformer.training.defaults import complete
from knowformer.training.distributed import join
from knowformer.training.events import Event, OnEvent, ValidationEvent, read_events, work_event
from knowformer.training.loop import OnValidation, Trainer
from knowformer.training.plan import check_memory
from knowformer.training.settings_file import (
    build_config,
    flat_settings,
    merge_settings,
    recommended_settings,
)
from knowformer.training.stopping import StopRequest
from knowformer.training.validation import training_splits

_logger = logging.getLogger(__name__)


def train(
    graph: GraphSource | None,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    config: RunConfig | None = None,
    resume: bool = False,
    start_from: str | Path | None = None,
    on_event: OnEvent | Sequence[OnEvent] | None = None,
    on_validation: OnValidation | None = None,
    calibrate: bool = True,
    clock: Clock | None = None,
) -> Reasoner:
    """Trains a model and leaves a run folder behind.

    Args:
        graph: a catalogue name, a folder, a triples file, or a graph or a data set already loaded;
            what has no splits is split by the seed. May be None when resuming, as the run folder
            has all facts.
        out: the run folder.
        settings: values by dotted name, such as ``{"model.hidden_dim": 64}``; what is not named is
            as recommended for the graph or by default, or as the run that goes on has it.
        config: all settings, complete, in place of ``settings``.
        resume: go on with the run in ``out`` if there is one. Its settings must be the same, but
            for limits: a finished run that is given more epochs or minutes in all is trained
            further, with a schedule of its own for what is added.
        start_from: start a new run from the weights of this one; relations are matched by name.
            ``shipped`` is the model that ships with the package, which fits any relations.
        on_event: called with each event of the run; several may be given, such as trackers.
        on_validation: called after each validation with the model as validated and the event.
            Either may raise ``StopTraining``.
        calibrate: fit probabilities to the validation facts once training is over.
        clock: what ``training.max_minutes`` is counted on; by default it starts now.

    Returns:
        A reasoner with the weights of the best checkpoint.
    """
    if (followed := follow()) is not None:
        return followed
    with join().leading():
        folder, stop = Path(out), StopRequest()
        tell = _tell_all([on_event] if callable(on_event) else on_event or (), stop)
        clock = clock or Clock()
        tell(work_event("reading"))
        resume = resume and holds_run(folder)
        source = None if start_from is None else run_to_start_from(start_from)
        if settings is not None:
            config = _composed(folder, graph, settings, config, source, resume=resume)
        started = None if resume else _start(folder, graph, config, source)
        with sole_trainer(folder):
            config, dataset = started or _go_on(folder, graph, config)
            run = _Run(folder, dataset, config, clock, stop, tell)
            trained = run.train(resume=resume, calibrate=calibrate, on_validation=on_validation)
            model, budget = trained
            calibration = run.calibrate(model, budget) if calibrate else load_calibration(folder)
            run.tell_end()
            send_result(join(), folder)
        bundle = Bundle(folder, config, dataset, model.eval(), config.training.link, calibration)
        return Reasoner.from_pretrained(bundle, threads=config.threads)


def follow() -> Reasoner | None:
    """Takes part in a training that another process leads; None: this one leads, or is alone."""
    bundle = join().follow(follow_run)
    return bundle and Reasoner.from_pretrained(bundle, threads=bundle.config.threads)


def _composed(
    folder: Path,
    graph: GraphSource | None,
    settings: Mapping[str, Any],
    config: RunConfig | None,
    source: Path | None,
    *,
    resume: bool,
) -> RunConfig:
    """Returns all settings: those named, and the others as recommended or as the run has them."""
    if config is not None:
        raise ConfigError("Expected `settings` or `config`, got both. Leave one of them out.")
    stored = load_config(folder).model_dump(mode="json") if resume else None
    return build_config(defaults=stored or starting_settings(graph, source), settings=settings)


def run_to_start_from(run: str | Path) -> Path:
    """Returns a run folder; ``shipped`` is the model that ships with the package."""
    return SHIPPED_FOLDER if str(run) == SHIPPED else Path(run)


def _tell_nobody(event: Event) -> None:
    del event


def _tell_all(callbacks: Sequence[OnEvent], stop: StopRequest) -> OnEvent:
    """Returns a callback that calls all, whichever of them asks for the end."""
    heeded = [stop.heed(callback) for callback in callbacks]

    def tell(event: Event) -> None:
        for callback in heeded:
            callback(event)

    return tell if heeded else _tell_nobody


def _start(
    folder: Path, graph: GraphSource | None, config: RunConfig | None, source: Path | None
) -> tuple[RunConfig, Dataset]:
    """Reads a graph and makes a run folder; returns the settings, complete, and the data set."""
    if graph is None:
        raise BundleError(
            f"Expected a run to go on with in {folder}, found none. Name a graph to train on."
        )
    config = config or build_config(defaults=starting_settings(graph, source))
    dataset = load_dataset(graph, seed=config.seed)
    config, note = complete(config, dataset.for_training())
    _check_possible(config, dataset)
    initial = None
    if source is not None:
        initial = InitialWeights(source, initial_weights(source, config, dataset.relations))
    start_run(folder, config, dataset, initial=initial)
    if note:  # of a run that there is: what is refused gets its sentence alone
        _logger.info("%s", note)
    return config, dataset


def _check_possible(config: RunConfig, dataset: Dataset) -> None:
    """Refuses what could not be trained, before a folder is made or memory is taken."""
    select_backend(config.backend)
    check_memory(config, dataset.train.graph)
    if config.model.relation_encoder == "table":
        _check_relations_trained(dataset)
    if not len(training_splits(dataset, config).train.facts):
        raise DataError(
            "Expected training facts, found none that the validation holdout leaves. Lower "
            "`training.validation_region` or `training.validation_relations`."
        )


def _check_relations_trained(dataset: Dataset) -> None:
    """Refuses relations that no training fact has, for a model with weights for each of them."""
    names, trained = dataset.relations.names, dataset.train.facts[:, 1].unique().tolist()
    untrained = sorted(set(range(len(names))) - set(trained))
    if untrained and dataset.is_inductive:
        raise DataError(
            f"Expected relations that occur in the training facts, got {names[untrained[0]]!r} in "
            f"those to answer from, and {len(untrained) - 1} others. With "
            "`model.relation_encoder=graph` a model reads relations from the graph."
        )


def _go_on(
    folder: Path, graph: GraphSource | None, config: RunConfig | None
) -> tuple[RunConfig, Dataset]:
    """Reads a run folder; returns the settings to go on with, and the data set."""
    check_resumable(folder)
    dataset = load_run_dataset(folder)
    _check_same_graph(folder, dataset, graph)
    _check_possible(config or load_config(folder), dataset)
    return continue_run(folder, config), dataset


@dataclass(frozen=True)
class _Run:
    """A run folder, and what its training needs."""

    folder: Path
    dataset: Dataset
    config: RunConfig
    clock: Clock
    stop: StopRequest
    tell: OnEvent

    def train(
        self, *, resume: bool, calibrate: bool, on_validation: OnValidation | None
    ) -> tuple[KnowFormer, Budget]:
        """Trains from the start or from the last checkpoint; returns the best checkpoint."""
        folder, config = self.folder, self.config
        if resume:
            remove_partial_files(folder)

        def save_best(model: KnowFormer, event: ValidationEvent) -> None:
            save_weights(folder, model, link=config.training.link)
            num_facts = len(trainer.valid.facts)
            update_metrics(folder, {"best_validation": _metrics(event) | {"num_facts": num_facts}})

        self.tell(work_event("preparing"))
        valid = self.dataset.for_training().valid
        questions = num_questions(valid) + num_relation_questions(valid) if calibrate else 0
        has_checkpoint = resume and (folder / CHECKPOINT_FILE).exists()
        plan = not has_checkpoint and self.tell is not _tell_nobody
        processes = join()
        send_run(processes, folder, resume=has_checkpoint, plan=plan, questions_after=questions)
        trainer = Trainer(
            training_splits(self.dataset, config),
            config,
            folder,
            on_event=self.tell,
            on_best=save_best,
            on_validated=on_validation and self.stop.heed(on_validation),
            stop=self.stop,
            clock=self.clock,
            questions_after=questions,
            weights=load_initial_weights(folder, config, self.dataset.relations),
            processes=processes,
        )
        if plan:
            self.tell(trainer.plan().event())
        trainer.prepare(resume=has_checkpoint)
        self._tell_start(trainer.counters.step)
        # Before training, which then has the rest of the time.
        ranks = None
        if "validation_baselines" not in read_metrics(folder):
            # Rules about a graph with other relations are learnt there.
            is_open = config.model.relation_encoder == "graph"
            splits = trainer.splits
            graph = splits.valid.graph if is_open else splits.train.graph
            ranks = rank_baselines(trainer.valid, trained_on=graph)
        model = trainer.run()
        self.tell(work_event("writing"))
        save_weights(folder, model, link=config.training.link)
        if "best_validation" not in read_metrics(folder):
            best = {"step": trainer.counters.best_step, "valid_mrr": trainer.counters.best_mrr}
            update_metrics(folder, {"best_validation": best})
        if trainer.counters.stopped is not None:
            stopped = {"step": trainer.counters.step, "reason": trainer.counters.stopped}
            update_metrics(folder, {"stopped": stopped})
        if ranks is not None:
            update_metrics(folder, {"validation_baselines": _compared(trainer, ranks)})
        _draw_curve(folder, title=f"{self.dataset.name}, seed {config.seed}")
        return model, trainer.budget

    def _tell_start(self, step: int) -> None:
        self.tell(
            {
                "kind": "start",
                "run": str(self.folder),
                "dataset": self.dataset.name,
                "settings": flat_settings(self.config),
                "step": step,
            }
        )

    def tell_end(self) -> None:
        """Tells what the run has come to."""
        step = read_counters(self.folder / CHECKPOINT_FILE).step
        metrics = read_metrics(self.folder)
        self.tell({"kind": "end", "run": str(self.folder), "step": step, "metrics": metrics})

    def calibrate(self, model: KnowFormer, budget: Budget) -> Calibration | None:
        """Calibrates a finished run within its budget, unless it is calibrated already."""
        calibration = load_calibration(self.folder)
        if calibration is not None:
            return calibration
        if budget.calibration_seconds(MIN_QUERIES) > budget.left:
            _logger.info(
                "Probabilities are not calibrated, as `training.max_minutes` leaves no time for "
                "it. Do it later: `Reasoner.from_pretrained('%s').calibrate()`.",
                self.folder,
            )
            return None
        done_of_all, cut_at = (0, 0), (0, 0)

        def progress(done: int, of: int) -> None:
            nonlocal done_of_all
            done_of_all = done, of
            self.tell(work_event("calibrating", done, of))

        def is_enough(num_scored: int) -> bool:
            nonlocal cut_at
            is_over = budget.is_time_to_fit(num_scored)
            if is_over and cut_at == (0, 0):
                cut_at = done_of_all
            return is_over

        try:
            calibration = calibrate_model(
                model,
                self.dataset,
                link=self.config.training.link,
                seed=self.config.seed,
                threads=self.config.threads,
                progress=progress,
                is_enough=is_enough,
            )
        except DataError as error:
            _logger.info("Probabilities are not calibrated. %s", error)
            return None
        if cut_at != (0, 0):
            _logger.info(
                "Probabilities are fitted to %s of %s validation questions, to keep within "
                "`training.max_minutes`.",
                *(f"{number:,}" for number in cut_at),
            )
        self.tell(work_event("writing"))
        return save_calibration(self.folder, calibration)


def _compared(trainer: Trainer, ranks: dict[Baseline, Ranks]) -> dict[str, Any]:
    """What the baselines score on the facts that selected the weights, beside the model."""
    valid, reciprocal = trainer.valid, trainer.counters.record_reciprocal_ranks
    num_relations = len(valid.graph.relations)
    directed = with_inverse_facts(valid.facts, num_relations)
    asks_head = is_inverse(directed[:, 1], num_relations)
    reports = compare(torch.tensor(reciprocal, dtype=torch.double), ranks, asks_head)
    return {name: report.model_dump() for name, report in reports.items()}


def _draw_curve(folder: Path, *, title: str) -> None:
    if can_draw():
        events = read_events(folder / "events.jsonl")
        draw_learning_curve(events, folder / "learning_curve.png", title=title)


def starting_settings(
    graph: GraphSource | None, start_from: Path | None = None, *, recommended: bool = True
) -> dict[str, Any]:
    """Returns settings: recommended for a graph, if wanted, and of the run to start from."""
    name = catalogue_name(graph) if recommended and graph is not None else None
    settings = recommended_settings(name)
    if start_from is not None:
        merge_settings(settings, inherited_settings(run_to_start_from(start_from)))
    return settings


def _check_same_graph(folder: Path, stored: Dataset, graph: GraphSource | None) -> None:
    if graph is None:
        return
    given = load_dataset(graph, seed=load_config(folder).seed)
    if not given.same_as(stored):
        raise BundleError(
            f"Expected the facts that {folder} was started with ({stored.name}), got others "
            f"({given.name}). Leave the graph out to go on with that run, or choose another `out`."
        )


def _metrics(event: ValidationEvent) -> dict[str, Any]:
    left_out = {"kind", "best", "elapsed_seconds"}
    return {key: value for key, value in event.items() if key not in left_out}
