"""Save and load a run folder: weights, config, graphs, metrics, environment. No pickle anywhere.

config.toml             the settings, complete
model.safetensors       weights kept so far: the latest not clearly worse than the best; as metadata
                        the model's link function, or that it has not seen the facts in training
dataset.json            names: relations, and the entities of each graph
facts.safetensors       facts as ids: of each graph and of each split
mapped/                 of a large data set, in the place of these two: arrays that stay on disk
metrics.json            the validation of the kept weights, baselines beside, then each evaluation
environment.json        hardware, versions, commit
calibration.json        scores to probabilities, if there were enough validation facts
events.jsonl            the record of training; learning_curve.png is its picture
checkpoint.safetensors  what a resumed training goes on from
initial.safetensors     weights that training started from, if they are another run's
tracking.json           under which id MLflow or Weights & Biases know the run, if they do
"""

import hashlib
import logging
import os
import re
import shutil
import tomllib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from knowformer.calibration.calibration import FORMAT_VERSION as CALIBRATION_VERSION
from knowformer.calibration.calibration import Calibration
from knowformer.data.dataset import Dataset
from knowformer.data.mapped_dataset import FOLDER as MAPPED_FOLDER
from knowformer.errors import BundleError, ConfigError, StorageError, printable
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer
from knowformer.runs.metrics import read_metrics, update_metrics
from knowformer.runs.stored_dataset import (
    FACTS_FILE,
    NAMES_FILE,
    load_run_dataset,
    save_run_dataset,
)
from knowformer.runs.stored_files import first_fault, read_text, write_json
from knowformer.runs.stored_weights import load_model
from knowformer.scoring.link import LinkFunction
from knowformer.storage.atomic_files import write_text
from knowformer.storage.locks import sole_process
from knowformer.storage.plain_files import open_plain
from knowformer.storage.tensor_files import read_metadata, write_tensors
from knowformer.system.environment import describe_environment
from knowformer.training.checkpoint import read_counters
from knowformer.training.config import RunConfig
from knowformer.training.events import kept_lines
from knowformer.training.settings_file import parse_config, parse_toml, to_toml

__all__ = [
    "CALIBRATION_FILE",
    "CHECKPOINT_FILE",
    "CONFIG_FILE",
    "ENVIRONMENT_FILE",
    "INITIAL_FILE",
    "WEIGHTS_FILE",
    "Bundle",
    "InitialWeights",
    "check_free",
    "check_resumable",
    "holds_run",
    "load_bundle",
    "load_calibration",
    "load_config",
    "load_initial_weights",
    "load_run_dataset",
    "read_environment",
    "read_metrics",
    "save_calibration",
    "save_config",
    "save_weights",
    "sole_trainer",
    "start_run",
    "update_metrics",
    "weights_sha256",
    "write_json",
]

_logger = logging.getLogger(__name__)

LOCK_FILE = ".training.lock"
CHECKPOINT_FILE = "checkpoint.safetensors"
CONFIG_FILE = "config.toml"
WEIGHTS_FILE = "model.safetensors"
CALIBRATION_FILE = "calibration.json"
INITIAL_FILE = "initial.safetensors"
ENVIRONMENT_FILE = "environment.json"
# In the metadata of model.safetensors, one or the other: of two the order would differ by chance.
LINK = "link_function"
TRAINED_ON_IT = "was_trained_on_it"  # "no", with the link function of the settings' loss
NUM_SETTINGS = re.compile(r"# (\d{1,9}) settings\n")
"""First line of config.toml: fewer than that, and the file was cut off."""


@dataclass(frozen=True)
class Bundle:
    """A run folder's content, loaded."""

    folder: Path
    config: RunConfig
    dataset: Dataset
    model: KnowFormer
    link: LinkFunction
    """How the model's scores become its probabilities."""
    calibration: Calibration | None = None
    was_trained_on_it: bool = True
    """Whether the model has seen the data set's training facts before; else it is zero-shot."""

    @property
    def fixed_relations(self) -> Vocabulary | None:
        """The relations that a graph to answer on must keep to; None: it may have any."""
        is_open = self.config.model.relation_encoder == "graph"
        return None if is_open else self.dataset.relations


@dataclass(frozen=True)
class InitialWeights:
    """Weights that a run starts from, and the run that they are of."""

    run: Path
    weights: dict[str, Tensor]


def holds_run(folder: Path) -> bool:
    """Returns True when the folder already holds a run, finished or not."""
    try:
        return (folder / CONFIG_FILE).exists()
    except OSError as error:  # forbidden, or a name that cannot be
        raise StorageError(
            f"Expected a folder that can be used at {folder}, got '{error.strerror}'. Choose "
            "another folder."
        ) from error


def check_free(folder: Path) -> None:
    """Checks that a folder holds no run.

    Raises:
        BundleError: it does.
    """
    if holds_run(folder):
        raise BundleError(
            f"Expected a folder without a run, found one in {folder}. Choose another `out`, or "
            "go on with that run with `resume=True`."
        )


@contextmanager
def sole_trainer(folder: Path) -> Generator[None]:
    """Keeps other processes from training in a run folder; a killed one does not hold it.

    Raises:
        BundleError: another process is at it.
    """
    refusal = BundleError(
        f"Expected {folder} to be free, found another process training in it. Wait until it is "
        "done, or choose another `out`."
    )
    with sole_process(folder / LOCK_FILE, refusal):
        yield


def start_run(
    folder: Path, config: RunConfig, dataset: Dataset, *, initial: InitialWeights | None = None
) -> None:
    """Writes what is known before training: settings, data set and environment.

    Args:
        folder: the run folder.
        config: the settings.
        dataset: the data set.
        initial: weights to start from, if they are another run's.

    Raises:
        BundleError: the folder holds a run already; nothing is overwritten.
    """
    check_free(folder)
    with _all_or_nothing(folder):
        save_run_dataset(folder, dataset)
        write_json(folder / ENVIRONMENT_FILE, describe_environment())
        if initial is not None:
            origin = {
                "run": printable(str(initial.run)),
                "weights_sha256": weights_sha256(initial.run),
            }
            write_tensors(folder / INITIAL_FILE, initial.weights, origin)
        save_config(folder, config)  # last: a folder with settings is a folder with a run


def save_config(folder: Path, config: RunConfig) -> None:
    """Writes a run's settings."""
    settings = to_toml(config)
    number = _num_settings(tomllib.loads(settings))
    write_text(folder / CONFIG_FILE, f"# {number} settings\n{settings}")


def load_initial_weights(
    folder: Path, config: RunConfig, relations: Vocabulary
) -> dict[str, Tensor] | None:
    """Loads the weights that a run starts from; None if it starts at random.

    Raises:
        BundleError: the file is damaged, or holds other weights than the settings say.
    """
    path = folder / INITIAL_FILE
    return load_model(path, config, relations)[0].state_dict() if path.exists() else None


@contextmanager
def _all_or_nothing(folder: Path) -> Generator[None]:
    """A run that cannot be stored leaves nothing behind, nor the folder if it was made for it."""
    is_new = not folder.exists()
    try:
        yield
    except StorageError:
        for name in (FACTS_FILE, NAMES_FILE, ENVIRONMENT_FILE, INITIAL_FILE):
            with suppress(OSError):
                (folder / name).unlink()
        shutil.rmtree(folder / MAPPED_FOLDER, ignore_errors=True)
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def save_weights(
    folder: Path, model: KnowFormer, *, link: LinkFunction, was_trained_on_it: bool = True
) -> None:
    """Writes the weights atomically, with the link function that they were trained for."""
    metadata = {LINK: str(link)} if was_trained_on_it else {TRAINED_ON_IT: "no"}
    write_tensors(folder / WEIGHTS_FILE, model.state_dict(), metadata)


def load_config(folder: Path) -> RunConfig:
    """Loads a run's settings."""
    path = folder / CONFIG_FILE
    text = read_text(path)
    settings = parse_toml(text, where=f"a TOML file at {path}")
    config = parse_config(settings, where=str(path))
    if not _is_whole(text, settings):
        raise ConfigError(
            f"Expected all settings of a run in {path}, found only {_num_settings(settings)}: the "
            "file is damaged. Restore it from a copy, or train again."
        )
    return config


def _is_whole(text: str, settings: dict[str, Any]) -> bool:
    """Returns False for a file cut off between two lines, which is TOML all the same."""
    announced = NUM_SETTINGS.match(text)
    if announced is None:  # older runs did not count; this was the last setting that they wrote
        return "checkpoint_minutes" in settings.get("training", {})
    return _num_settings(settings) >= int(announced[1])


def _num_settings(settings: dict[str, Any]) -> int:
    return sum(_num_settings(v) if isinstance(v, dict) else 1 for v in settings.values())


def load_bundle(folder: Path) -> Bundle:
    """Loads a run folder.

    Raises:
        BundleError: a file is missing or broken; the message names it.
    """
    config = load_config(folder)
    dataset = load_run_dataset(folder)
    path = folder / WEIGHTS_FILE
    if not path.exists():
        raise BundleError(
            f"Expected {path.name} in {folder}, found none. Training writes it after its first "
            f"validation; go on with that run: `train(None, '{folder}', resume=True)`."
        )
    model, metadata = load_model(path, config, dataset.relations)
    # Runs from before the link function was stored: their loss tells it.
    link = metadata.get(LINK, config.training.link)
    if link not in get_args(LinkFunction):
        raise BundleError(
            f"Expected the link function {' or '.join(get_args(LinkFunction))} in the metadata of "
            f"{path}, got {link!r}. Update knowformer."
        )
    calibration, was_trained_on_it = load_calibration(folder), metadata.get(TRAINED_ON_IT) != "no"
    return Bundle(
        folder, config, dataset, model.eval(), cast("LinkFunction", link), calibration,
        was_trained_on_it,
    )  # fmt: skip


def check_resumable(folder: Path) -> None:
    """Checks what a run that goes on reads or replaces later, before anything is changed.

    Raises:
        BundleError: a file is damaged, or no file.
    """
    read_metrics(folder)
    checkpoint, weights = folder / CHECKPOINT_FILE, folder / WEIGHTS_FILE
    if os.path.lexists(checkpoint):
        kept_lines(folder / "events.jsonl", read_counters(checkpoint).event_bytes)
    if os.path.lexists(weights):
        read_metadata(weights)
        load_calibration(folder)


def read_environment(folder: Path) -> dict[str, Any]:
    """Reads where a run was trained; empty when it is not there.

    Raises:
        BundleError: the file is damaged.
    """
    path = folder / ENVIRONMENT_FILE
    if not path.exists():
        return {}
    try:
        return TypeAdapter(dict[str, Any]).validate_json(read_text(path))
    except ValidationError as error:
        raise BundleError(
            f"Expected a JSON object in {path}, got: {first_fault(error)}. Remove the file."
        ) from None


def save_calibration(folder: Path, calibration: Calibration) -> Calibration:
    """Writes a calibration, tied to the weights that it was fitted for."""
    tied = calibration.model_copy(update={"weights_sha256": weights_sha256(folder)})
    write_json(folder / CALIBRATION_FILE, tied.model_dump(mode="json", by_alias=True))
    return tied


def load_calibration(folder: Path) -> Calibration | None:
    """Loads a run's calibration; None when there is none, or when the weights have changed since.

    Raises:
        BundleError: the file is damaged.
    """
    path = folder / CALIBRATION_FILE
    if not path.exists():
        return None
    again = f"fit it again: `Reasoner.from_pretrained('{folder}').calibrate()`."
    try:
        calibration = Calibration.model_validate_json(read_text(path))
    except ValidationError as error:
        raise BundleError(
            f"Expected a calibration in {path}, got: {first_fault(error)}. Remove it and {again}"
        ) from None
    if calibration.format_version > CALIBRATION_VERSION:
        raise BundleError(
            f"Expected format {CALIBRATION_VERSION} or older in {path}, got "
            f"{calibration.format_version}. Update knowformer."
        )
    if calibration.weights_sha256 != weights_sha256(folder):
        _logger.warning("%s was fitted for other weights and is not used; %s", path, again)
        return None
    return calibration


def weights_sha256(folder: Path) -> str:
    """Returns the checksum of a run's weights."""
    path = folder / WEIGHTS_FILE
    try:
        with open_plain(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BundleError(f"Expected weights at {path}, got '{error.strerror}'.") from error
