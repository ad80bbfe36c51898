"""Save and load a run folder: weights, config, graphs, metrics, environment. No pickle anywhere.

config.toml             the settings, complete
model.safetensors       weights kept so far: the latest not clearly worse than the best; as metadata
                        the model's link function
dataset.json            names: relations, and the entities of each graph
facts.safetensors       facts as ids: of each graph and of each split
metrics.json            the validation of the kept weights, baselines beside, then each evaluation
environment.json        hardware, versions, commit
calibration.json        scores to probabilities, if there were enough validation facts
events.jsonl            the record of training; learning_curve.png is its picture
checkpoint.safetensors  what a resumed training goes on from
initial.safetensors     weights that training started from, if they are another run's
tracking.json           under which id MLflow or Weights & Biases know the run, if they do
"""

import hashlib
import json
import logging
import re
import tomllib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import torch
from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError
from torch import Tensor

from knowformer.calibration.calibration import FORMAT_VERSION as CALIBRATION_VERSION
from knowformer.calibration.calibration import Calibration
from knowformer.choices import SplitName
from knowformer.data.dataset import SPLIT_NAMES, Dataset, Split
from knowformer.data.labels import Labels
from knowformer.errors import BundleError, ConfigError, StorageError
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer
from knowformer.scoring.link import LinkFunction
from knowformer.storage.atomic_files import write_text
from knowformer.storage.tensor_files import read_tensors, write_tensors
from knowformer.system.environment import describe_environment
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import parse_config, to_toml

_logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
LOCK_FILE = ".training.lock"
CHECKPOINT_FILE = "checkpoint.safetensors"
INITIAL_FILE = "initial.safetensors"
LINK = "link_function"  # in the metadata of model.safetensors
NUM_SETTINGS = re.compile(r"# (\d+) settings\n")
"""First line of config.toml: fewer than that, and the file was cut off."""


class _DatasetFile(BaseModel):
    """dataset.json."""

    format_version: int
    name: str
    relations: list[str]
    graphs: list[list[str]]  # entity names of each graph
    graph_of_split: dict[SplitName, int]
    entity_names: dict[str, str] = {}  # readable names by id, where the data set has them
    relation_names: dict[str, str] = {}


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


@dataclass(frozen=True)
class InitialWeights:
    """Weights that a run starts from, and the run that they are of."""

    run: Path
    weights: dict[str, Tensor]


def holds_run(folder: Path) -> bool:
    """Returns True when the folder already holds a run, finished or not."""
    try:
        return (folder / "config.toml").exists()
    except OSError as error:  # forbidden, or a name that cannot be
        raise StorageError(
            f"Expected a folder that can be used at {folder}, got '{error.strerror}'. Choose "
            "another folder."
        ) from error


@contextmanager
def sole_trainer(folder: Path) -> Generator[None]:
    """Keeps other processes from training in a run folder; a killed one does not hold it.

    Raises:
        BundleError: another process is at it.
    """
    path = folder / LOCK_FILE
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise BundleError(
            f"Expected {folder} to be free, found another process training in it. Wait until it "
            "is done, or choose another `out`."
        ) from None
    except (OSError, NotImplementedError) as error:  # a disk without locks
        _logger.debug("No lock on %s: %s", folder, error)
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):
                path.unlink()
        lock.release()


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
    if holds_run(folder):
        raise BundleError(
            f"Expected a folder without a run, found one in {folder}. Choose another `out`, or "
            "go on with that run with `resume=True`."
        )
    graphs = _distinct_graphs(dataset)
    splits = {name: dataset.split(name) for name in SPLIT_NAMES}
    names = _DatasetFile(
        format_version=FORMAT_VERSION,
        name=dataset.name,
        relations=list(dataset.relations),
        graphs=[list(graph.entities) for graph in graphs],
        graph_of_split={name: graphs.index(splits[name].graph) for name in SPLIT_NAMES},
        entity_names=dict(dataset.labels.entities),
        relation_names=dict(dataset.labels.relations),
    )
    facts = {f"graph.{number}": graph.facts for number, graph in enumerate(graphs)}
    for name, split in splits.items():
        facts |= {f"{name}.facts": split.facts, f"{name}.known": split.known}
    compact = {name: tensor.to(torch.int32) for name, tensor in facts.items()}
    with _all_or_nothing(folder):
        write_tensors(folder / "facts.safetensors", compact)
        write_text(folder / "dataset.json", json.dumps(names.model_dump(), ensure_ascii=False))
        write_json(folder / "environment.json", describe_environment())
        if initial is not None:
            origin = {"run": str(initial.run), "weights_sha256": weights_sha256(initial.run)}
            write_tensors(folder / INITIAL_FILE, initial.weights, origin)
        save_config(folder, config)  # last: a folder with settings is a folder with a run


def save_config(folder: Path, config: RunConfig) -> None:
    """Writes a run's settings."""
    settings = to_toml(config)
    number = _num_settings(tomllib.loads(settings))
    write_text(folder / "config.toml", f"# {number} settings\n{settings}")


def load_initial_weights(folder: Path) -> dict[str, Tensor] | None:
    """Loads the weights that a run starts from; None if it starts at random."""
    path = folder / INITIAL_FILE
    return read_tensors(path)[0] if path.exists() else None


@contextmanager
def _all_or_nothing(folder: Path) -> Generator[None]:
    """A run that cannot be stored leaves nothing behind, nor the folder if it was made for it."""
    is_new = not folder.exists()
    try:
        yield
    except StorageError:
        for name in ("facts.safetensors", "dataset.json", "environment.json", INITIAL_FILE):
            with suppress(OSError):
                (folder / name).unlink()
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def save_weights(folder: Path, model: KnowFormer, *, link: LinkFunction) -> None:
    """Writes the weights atomically, with the link function that they were trained for."""
    write_tensors(folder / "model.safetensors", model.state_dict(), {LINK: link})


def load_config(folder: Path) -> RunConfig:
    """Loads a run's settings."""
    path = folder / "config.toml"
    text = _read_text(path)
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"Expected a TOML file at {path}, got: {error}.") from error
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
    model = KnowFormer(
        config.model, num_with_inverses(len(dataset.relations)), backend=config.backend
    )
    path = folder / "model.safetensors"
    if not path.exists():
        raise BundleError(
            f"Expected {path.name} in {folder}, found none. Training writes it after its first "
            f"validation; go on with that run: `train(None, '{folder}', resume=True)`."
        )
    weights, metadata = read_tensors(path)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise BundleError(
            f"Expected the weights of this run's settings in {path}, got others. Was config.toml "
            "edited after training?"
        ) from error
    # Runs from before the link function was stored: their loss tells it.
    link = metadata.get(LINK, config.training.link)
    if link not in get_args(LinkFunction):
        raise BundleError(
            f"Expected the link function {' or '.join(get_args(LinkFunction))} in the metadata of "
            f"{path}, got {link!r}. Update knowformer."
        )
    return Bundle(
        folder, config, dataset, model.eval(), cast("LinkFunction", link), load_calibration(folder)
    )


def save_calibration(folder: Path, calibration: Calibration) -> Calibration:
    """Writes a calibration, tied to the weights that it was fitted for."""
    tied = calibration.model_copy(update={"weights_sha256": weights_sha256(folder)})
    write_json(folder / "calibration.json", tied.model_dump(mode="json", by_alias=True))
    return tied


def load_calibration(folder: Path) -> Calibration | None:
    """Loads a run's calibration; None when there is none, or when the weights have changed since.

    Raises:
        BundleError: the file is damaged.
    """
    path = folder / "calibration.json"
    if not path.exists():
        return None
    remedy = f"Fit it again: `Reasoner.from_pretrained('{folder}').calibrate()`."
    try:
        calibration = Calibration.model_validate_json(_read_text(path))
    except ValidationError as error:
        raise BundleError(
            f"Expected a calibration in {path}, got: {_first(error)}. {remedy}"
        ) from None
    if calibration.format_version > CALIBRATION_VERSION:
        raise BundleError(
            f"Expected format {CALIBRATION_VERSION} or older in {path}, got "
            f"{calibration.format_version}. Update knowformer."
        )
    if calibration.weights_sha256 != weights_sha256(folder):
        _logger.warning("%s was fitted for other weights and is not used. %s", path, remedy)
        return None
    return calibration


def weights_sha256(folder: Path) -> str:
    """Returns the checksum of a run's weights."""
    with (folder / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_run_dataset(folder: Path) -> Dataset:
    """Loads the data set that a run was trained on, from the run folder alone."""
    path = folder / "dataset.json"
    try:
        names = _DatasetFile.model_validate_json(_read_text(path))
    except ValidationError as error:
        raise BundleError(f"Expected a data set's names in {path}, got: {_first(error)}.") from None
    if names.format_version > FORMAT_VERSION:
        raise BundleError(
            f"Expected format {FORMAT_VERSION} or older in {path}, got {names.format_version}. "
            "Update knowformer."
        )
    compact, _ = read_tensors(folder / "facts.safetensors")
    facts = {name: tensor.long() for name, tensor in compact.items()}
    relations = Vocabulary(names.relations, kind="relation")
    try:
        graphs = [
            KnowledgeGraph(Vocabulary(entities, kind="entity"), relations, facts[f"graph.{number}"])
            for number, entities in enumerate(names.graphs)
        ]
        splits = {
            name: Split(name, graphs[number], facts[f"{name}.facts"], facts[f"{name}.known"])
            for name, number in names.graph_of_split.items()
        }
        labels = Labels(names.entity_names, names.relation_names)
        return Dataset(names.name, *(splits[name] for name in SPLIT_NAMES), labels=labels)
    except (KeyError, IndexError) as error:
        raise BundleError(
            f"Expected facts for every split in {folder / 'facts.safetensors'}, found no {error}."
        ) from error


def write_json(path: Path, content: Any) -> None:
    """Writes JSON atomically, for people as much as for programs."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_metrics(folder: Path) -> dict[str, Any]:
    """Reads metrics.json; empty when there is none.

    Raises:
        BundleError: the file is damaged.
    """
    path = folder / "metrics.json"
    if not path.exists():
        return {}
    try:
        metrics: dict[str, Any] = json.loads(_read_text(path))
    except ValueError as error:
        raise BundleError(
            f"Expected JSON in {path}, got: {error}. The file is damaged; remove it and evaluate "
            "again."
        ) from error
    return metrics


def update_metrics(folder: Path, entry: dict[str, Any]) -> None:
    """Adds or replaces entries of metrics.json."""
    write_json(folder / "metrics.json", read_metrics(folder) | entry)


def _distinct_graphs(dataset: Dataset) -> list[KnowledgeGraph]:
    graphs: list[KnowledgeGraph] = []
    for name in SPLIT_NAMES:
        graph = dataset.split(name).graph
        if not any(graph is other for other in graphs):
            graphs.append(graph)
    return graphs


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise BundleError(
            f"Expected a run folder with {path.name}, found none at {path.parent}. Make one with "
            "`train()`."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"Expected a readable file at {path}, got: {error}.") from error


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'the top'}"
