"""``train``: makes a run folder, or goes on with one, and returns a reasoner on it."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from knowformer.data.dataset import Dataset, catalogue_name, load_dataset
from knowformer.errors import BundleError, ConfigError, DataError
from knowformer.model.knowformer import KnowFormer
from knowformer.plots.learning_curve import can_draw, draw_learning_curve
from knowformer.reasoner import Reasoner
from knowformer.runs.folder import (
    holds_run,
    load_calibration,
    load_config,
    load_run_dataset,
    read_metrics,
    save_validated_weights,
    save_weights,
    sole_trainer,
    start_run,
    update_metrics,
)
from knowformer.storage.atomic_files import remove_partial_files
from knowformer.training.config import (
    RunConfig,
    build_config,
    flat_settings,
    recommended_settings,
)
from knowformer.training.events import Event, read_events
from knowformer.training.loop import Trainer
from knowformer.training.plan import choose_batch_size

_logger = logging.getLogger(__name__)


def train(
    graph: str | Path | Dataset | None,
    out: str | Path,
    *,
    config: RunConfig | None = None,
    resume: bool = False,
    on_event: Callable[[Event], None] | None = None,
    keep_validations: bool = False,
    calibrate: bool = True,
) -> Reasoner:
    """Trains a model and leaves a run folder behind.

    Args:
        graph: a catalogue name, a folder, a triples file, or a data set already loaded; may be None
            when resuming, as the run folder has all facts.
        out: the run folder.
        config: the settings; if not given, the defaults with what is recommended for the graph.
        resume: go on with the run in ``out`` if there is one; its settings must be the same.
        on_event: called with each event of training.
        keep_validations: keep the weights of every validation, not only those chosen; see
            ``runs.folder.load_validated_weights``.
        calibrate: fit probabilities to the validation facts once training is over.

    Returns:
        A reasoner with the weights that did best on validation.
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
        config = _with_batch_size(config, dataset)
        start_run(folder, config, dataset)

    with sole_trainer(folder):
        _run_to_its_end(
            folder,
            dataset,
            config,
            resume=resume,
            keep_validations=keep_validations,
            on_event=on_event,
        )
        if calibrate:
            _calibrate_once(folder, config.threads, on_event)
    return Reasoner.from_pretrained(folder, threads=config.threads)


def _run_to_its_end(
    folder: Path,
    dataset: Dataset,
    config: RunConfig,
    *,
    resume: bool,
    keep_validations: bool,
    on_event: Callable[[Event], None] | None,
) -> None:
    """Trains from the start or from the last checkpoint."""
    if resume:
        remove_partial_files(folder)

    def keep_best(model: KnowFormer, event: Event) -> None:
        save_weights(folder, model, link=config.training.link)
        update_metrics(folder, {"best_validation": _public(event)})

    def keep(model: KnowFormer, event: Event) -> None:
        save_validated_weights(folder, model, event["step"])

    trainer = Trainer(
        dataset.for_training(),
        config,
        folder,
        on_event=on_event,
        on_best=keep_best,
        on_validated=keep if keep_validations else None,
    )
    goes_on = resume and (folder / "checkpoint.safetensors").exists()
    if on_event is not None and not goes_on:
        plan = trainer.plan()
        on_event({"kind": "plan", "fits": plan.fits, **asdict(plan)})
    trainer.run(resume=goes_on)
    save_weights(folder, trainer.model, link=config.training.link)
    if "best_validation" not in read_metrics(folder):
        best = {"step": trainer.counters.best_step, "valid_mrr": trainer.counters.best_mrr}
        update_metrics(folder, {"best_validation": best})
    _draw_curve(folder, title=f"{dataset.name}, seed {config.seed}")


def _draw_curve(folder: Path, *, title: str) -> None:
    if can_draw():
        events = read_events(folder / "events.jsonl")
        draw_learning_curve(events, folder / "learning_curve.png", title=title)


def _with_batch_size(config: RunConfig, dataset: Dataset) -> RunConfig:
    """Chosen once and stored: a resumed run goes on with it, on whatever machine."""
    size = config.training.batch_size or choose_batch_size(config, dataset.train.graph)
    training = config.training.model_copy(update={"batch_size": size})
    return config.model_copy(update={"training": training})


def _calibrate_once(folder: Path, threads: int, on_event: Callable[[Event], None] | None) -> None:
    """Fits probabilities at the end of a run, unless that was done."""
    if load_calibration(folder) is not None:
        return

    def tell(done: int, total: int) -> None:
        if on_event is not None:
            on_event({"kind": "calibration", "done": done, "total": total})

    try:
        Reasoner.from_pretrained(folder, threads=threads).calibrate(progress=tell)
    except DataError as error:
        _logger.info("Probabilities are not calibrated. %s", error)


def recommended_config(graph: str | Path | Dataset) -> RunConfig:
    """Returns the settings of a run for which none were given."""
    name = None if isinstance(graph, Dataset) else catalogue_name(graph)
    return build_config(defaults=recommended_settings(name))


def _stored_settings(folder: Path, wanted: RunConfig | None) -> RunConfig:
    stored = load_config(folder)
    if wanted is not None and wanted.training.batch_size is None:
        size = {"batch_size": stored.training.batch_size}
        training = wanted.training.model_copy(update=size)
        wanted = wanted.model_copy(update={"training": training})
    if wanted is not None and wanted != stored:
        before, now = flat_settings(stored), flat_settings(wanted)
        key = next(key for key in before if before[key] != now[key])
        raise ConfigError(
            f"Expected the settings that {folder} was started with, {key} = {before[key]!r}, got "
            f"{now[key]!r}. Leave settings out to go on with that run, or choose another --out."
        )
    return stored


def _check_same_graph(
    folder: Path, stored: Dataset, graph: str | Path | Dataset | None, config: RunConfig
) -> None:
    if graph is None:
        return
    given = graph if isinstance(graph, Dataset) else load_dataset(graph, seed=config.seed)
    if not given.same_as(stored):
        raise BundleError(
            f"Expected the facts that {folder} was started with ({stored.name}), got others "
            f"({given.name}). Leave the graph out to go on with that run, or choose another --out."
        )


def _public(event: Event) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in {"kind", "best"}}
