"""``train``: makes a run folder, or resumes one, and returns a reasoner on it."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from knowformer.calibration.calibrate import calibrate_model
from knowformer.data.dataset import Dataset, TrainingSplits, catalogue_name, load_dataset
from knowformer.data.holdout import hold_out
from knowformer.errors import BundleError, ConfigError, DataError
from knowformer.evaluation.baselines.comparison import compare
from knowformer.evaluation.baselines.ranking import rank_baselines
from knowformer.graph.inverse import is_inverse, with_inverse_facts
from knowformer.model.knowformer import KnowFormer
from knowformer.plots.learning_curve import can_draw, draw_learning_curve
from knowformer.reasoner import Reasoner
from knowformer.runs.folder import (
    holds_run,
    load_calibration,
    load_config,
    load_run_dataset,
    read_metrics,
    save_calibration,
    save_weights,
    sole_trainer,
    start_run,
    update_metrics,
)
from knowformer.storage.atomic_files import remove_partial_files
from knowformer.training.config import RunConfig
from knowformer.training.events import Event, ValidationEvent, read_events
from knowformer.training.loop import OnValidation, Trainer
from knowformer.training.plan import choose_batch_size, choose_view_size
from knowformer.training.settings_file import build_config, flat_settings, recommended_settings

_logger = logging.getLogger(__name__)


def train(
    graph: str | Path | Dataset | None,
    out: str | Path,
    *,
    config: RunConfig | None = None,
    resume: bool = False,
    on_event: Callable[[Event], None] | None = None,
    on_validation: OnValidation | None = None,
    calibrate: bool = True,
) -> Reasoner:
    """Trains a model and leaves a run folder behind.

    Args:
        graph: a catalogue name, a folder, a triples file, or a data set already loaded; may be None
            when resuming, as the run folder has all facts.
        out: the run folder.
        config: the settings; by default those recommended for the graph.
        resume: resume the run in ``out`` if there is one; its settings must be the same.
        on_event: called with each event of the run.
        on_validation: called after each validation with the model as validated and the event.
        calibrate: fit probabilities to the validation facts once training is over.

    Returns:
        A reasoner with the weights of the best checkpoint.
    """
    folder = Path(out)
    resume = resume and holds_run(folder)
    if resume:
        config, dataset = _stored_settings(folder, config), load_run_dataset(folder)
        _check_same_graph(folder, dataset, graph, config)
    else:
        if graph is None:
            raise BundleError(
                f"Expected a run to go on with in {folder}, found none. Name a graph to train on."
            )
        config = config or recommended_config(graph)
        dataset = graph if isinstance(graph, Dataset) else load_dataset(graph, seed=config.seed)
        config = _fixed(config, dataset)
        start_run(folder, config, dataset)

    with sole_trainer(folder):
        model = _run_to_its_end(
            folder,
            dataset,
            config,
            resume=resume,
            on_event=on_event,
            on_validation=on_validation,
        )
        if calibrate:
            _calibrate_once(folder, model, dataset, config, on_event)
    return Reasoner.from_pretrained(folder, threads=config.threads)


def _run_to_its_end(
    folder: Path,
    dataset: Dataset,
    config: RunConfig,
    *,
    resume: bool,
    on_event: Callable[[Event], None] | None,
    on_validation: OnValidation | None,
) -> KnowFormer:
    """Trains from the start or from the last checkpoint, and returns the best checkpoint."""
    if resume:
        remove_partial_files(folder)

    def save_best(model: KnowFormer, event: ValidationEvent) -> None:
        save_weights(folder, model, link=config.training.link)
        update_metrics(folder, {"best_validation": _metrics(event)})

    trainer = Trainer(
        training_splits(dataset, config),
        config,
        folder,
        on_event=on_event,
        on_best=save_best,
        on_validated=on_validation,
    )
    has_checkpoint = resume and (folder / "checkpoint.safetensors").exists()
    if on_event is not None and not has_checkpoint:
        on_event(trainer.plan().event())
    model = trainer.run(resume=has_checkpoint)
    save_weights(folder, model, link=config.training.link)
    stored = read_metrics(folder)
    if "best_validation" not in stored:
        best = {"step": trainer.counters.best_step, "valid_mrr": trainer.counters.best_mrr}
        update_metrics(folder, {"best_validation": best})
    if "validation_baselines" not in stored:
        update_metrics(folder, {"validation_baselines": _baselines(trainer)})
    _draw_curve(folder, title=f"{dataset.name}, seed {config.seed}")
    return model


def _baselines(trainer: Trainer) -> dict[str, Any]:
    """What the baselines score on the facts that selected the weights."""
    valid, reciprocal = trainer.valid, trainer.counters.record_reciprocal_ranks
    num_relations = len(valid.graph.relations)
    directed = with_inverse_facts(valid.facts, num_relations)
    asks_head = is_inverse(directed[:, 1], num_relations)
    ranks = rank_baselines(valid, trained_on=trainer.splits.train.graph)
    reports = compare(torch.tensor(reciprocal, dtype=torch.double), ranks, asks_head)
    return {name: report.model_dump() for name, report in reports.items()}


def training_splits(dataset: Dataset, config: RunConfig) -> TrainingSplits:
    """Returns the facts that a run trains and validates on, with its validation holdout."""
    return hold_out(
        dataset.for_training(),
        entities=config.training.validation_region,
        relations=config.training.validation_relations,
        seed=config.seed,
    )


def _draw_curve(folder: Path, *, title: str) -> None:
    if can_draw():
        events = read_events(folder / "events.jsonl")
        draw_learning_curve(events, folder / "learning_curve.png", title=title)


def _fixed(config: RunConfig, dataset: Dataset) -> RunConfig:
    """Chooses what the settings leave open, so that a resumed run has the same on any machine."""
    graph = dataset.train.graph
    if config.model.view_size is None:
        seen = {"view_size": choose_view_size(config, dataset.for_training().valid)}
        config = config.model_copy(update={"model": config.model.model_copy(update=seen)})
    size = config.training.batch_size or choose_batch_size(config, graph)
    training = config.training.model_copy(update={"batch_size": size})
    return config.model_copy(update={"training": training})


def _calibrate_once(
    folder: Path,
    model: KnowFormer,
    dataset: Dataset,
    config: RunConfig,
    on_event: Callable[[Event], None] | None,
) -> None:
    """Calibrates a finished run, unless it is calibrated already."""
    if load_calibration(folder) is not None:
        return

    def report(done: int, total: int) -> None:
        if on_event is not None:
            on_event({"kind": "calibration", "done": done, "total": total})

    try:
        calibration = calibrate_model(
            model,
            dataset,
            link=config.training.link,
            seed=config.seed,
            threads=config.threads,
            progress=report,
        )
    except DataError as error:
        _logger.info("Probabilities are not calibrated. %s", error)
    else:
        save_calibration(folder, calibration)


def recommended_config(graph: str | Path | Dataset) -> RunConfig:
    """Returns the settings of a run that was given none."""
    name = None if isinstance(graph, Dataset) else catalogue_name(graph)
    return build_config(defaults=recommended_settings(name))


def _stored_settings(folder: Path, wanted: RunConfig | None) -> RunConfig:
    stored = load_config(folder)
    if wanted is not None:
        wanted = _left_open(wanted, stored)
    if wanted is not None and wanted != stored:
        before, now = flat_settings(stored), flat_settings(wanted)
        key = next(key for key in before if before[key] != now[key])
        raise ConfigError(
            f"Expected the settings that {folder} was started with, {key} = {before[key]!r}, got "
            f"{now[key]!r}. Leave settings out to go on with that run, or choose another `out`."
        )
    return stored


def _left_open(wanted: RunConfig, stored: RunConfig) -> RunConfig:
    """Returns settings with what they leave open as it was chosen when the run started."""
    model, training = wanted.model, wanted.training
    if model.view_size is None:
        model = model.model_copy(update={"view_size": stored.model.view_size})
    if training.batch_size is None:
        training = training.model_copy(update={"batch_size": stored.training.batch_size})
    return wanted.model_copy(update={"model": model, "training": training})


def _check_same_graph(
    folder: Path, stored: Dataset, graph: str | Path | Dataset | None, config: RunConfig
) -> None:
    if graph is None:
        return
    given = graph if isinstance(graph, Dataset) else load_dataset(graph, seed=config.seed)
    if not given.same_as(stored):
        raise BundleError(
            f"Expected the facts that {folder} was started with ({stored.name}), got others "
            f"({given.name}). Leave the graph out to go on with that run, or choose another `out`."
        )


def _metrics(event: ValidationEvent) -> dict[str, Any]:
    left_out = {"kind", "best", "elapsed_seconds"}
    return {key: value for key, value in event.items() if key not in left_out}
