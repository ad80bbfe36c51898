"""One training for all experiments with equal settings: started, resumed, or loaded.

A run folder is named after data set, seed and settings. So the selection study and the ablation
use the runs of the main tables, and a training that was killed goes on where it was.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

from knowformer.pipeline import train
from knowformer.reasoner import Reasoner
from knowformer.runs.folder import holds_run, load_config, write_json
from knowformer.system.workers import available_cores
from knowformer.training.checkpoint import Counters, read_counters
from knowformer.training.config import RunConfig
from knowformer.training.events import Event, read_events
from knowformer_lab.experiment import Experiment
from knowformer_lab.memory import peak_memory_mib
from knowformer_lab.results import StoppedBy, TrainingRecord, Validation, same_settings
from knowformer_lab.validations import ValidationWeights

RECORD_FILE = "training_record.json"


@dataclass(frozen=True)
class TrainedRun:
    """A finished training."""

    folder: Path
    reasoner: Reasoner
    record: TrainingRecord


def run_folder(out: Path, experiment: Experiment, config: RunConfig, *, keep: bool) -> Path:
    """Returns the folder of a training with these settings, there or to be made.

    Args:
        out: holds all run folders.
        experiment: gives the data set.
        config: the settings; threads do not matter.
        keep: whether the weights of every validation are needed.
    """
    differing = config.model_dump(mode="json", exclude_defaults=True, exclude={"seed", "threads"})
    label = json.dumps(differing, sort_keys=True)
    digest = hashlib.sha256(label.encode()).hexdigest()[:8]
    base = f"{experiment.dataset}-seed{config.seed}-{digest}".replace("/", "_")
    for number in count(1):
        folder = out / (base if number == 1 else f"{base}-{number}")
        if not holds_run(folder):
            return folder
        serves = not keep or ValidationWeights(folder).are_kept
        # The name tells settings from the defaults; the defaults may have been others then.
        if serves and same_settings(load_config(folder), config):
            return folder
    raise AssertionError("count() does not end")


def trained_run(
    folder: Path,
    dataset: str,
    config: RunConfig,
    *,
    keep: bool,
    on_event: Callable[[Event], None] | None = None,
) -> TrainedRun:
    """Trains, goes on with a training that was cut off, or loads one that is finished."""
    if (folder / RECORD_FILE).is_file():
        record = TrainingRecord.model_validate_json((folder / RECORD_FILE).read_text("utf-8"))
        return TrainedRun(folder, Reasoner.from_pretrained(folder, threads=config.threads), record)
    resume = holds_run(folder)
    validations = ValidationWeights(folder)
    if keep and not resume:
        validations.folder.mkdir(parents=True, exist_ok=True)
    reasoner = train(
        dataset if not resume else None,
        folder,
        # The run's own when it is resumed: it may have been started with other threads.
        config=None if resume else config,
        resume=resume,
        on_event=on_event,
        on_validation=validations.save if validations.are_kept else None,
        calibrate=False,  # no figure of the paper is a probability
    )
    record = _record(folder, reasoner.config)
    write_json(folder / RECORD_FILE, record.model_dump(mode="json"))
    return TrainedRun(folder, reasoner, record)


def _record(folder: Path, config: RunConfig) -> TrainingRecord:
    counters = read_counters(folder / "checkpoint.safetensors")
    events = read_events(folder / "events.jsonl")
    validations = [
        Validation(
            step=event["step"],
            epoch=event["epoch"] + 1,
            minutes=round(event["elapsed_seconds"] / 60, 3),
            mrr=event["valid_mrr"],
        )
        for event in events
        if event["kind"] == "validation"
    ]
    chosen = next(point for point in validations if point.step == counters.best_step)
    speeds = [event["queries_per_second"] for event in events if event["kind"] == "training"]
    environment = json.loads((folder / "environment.json").read_text("utf-8"))
    return TrainingRecord(
        run=folder.name,
        valid_mrr=chosen.mrr,
        chosen_step=chosen.step,
        chosen_epoch=chosen.epoch,
        epochs_done=round(counters.epochs_done, 3),
        steps_done=counters.step,
        stopped_by=_stopped_by(counters, config),
        minutes=round(counters.elapsed_seconds / 60, 3),
        queries_per_second=round(median(speeds), 2) if speeds else 0.0,
        peak_memory_mib=peak_memory_mib(),
        threads=config.threads or available_cores(),
        commit=environment["commit"],
        validations=validations,
    )


def _stopped_by(counters: Counters, config: RunConfig) -> StoppedBy:
    training = config.training
    if counters.epochs_done >= training.epochs:
        return "epochs"
    if training.patience is not None and counters.validations_since_record >= training.patience:
        return "patience"
    return "minutes"
