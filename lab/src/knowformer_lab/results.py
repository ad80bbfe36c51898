"""Result files: one per finished (experiment, seed), complete enough to be read years later.

``experiments/results/TABLE/NAME/seedK.json`` is all that the report is made from.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from knowformer.data.dataset import Dataset
from knowformer.errors import BundleError, ConfigError
from knowformer.evaluation.report import EvaluationReport
from knowformer.runs.folder import write_json
from knowformer.training.config import RunConfig
from knowformer.training.defaults import LEFT_OPEN
from knowformer.training.settings_file import flat_settings, parse_config
from knowformer_lab.experiment import Experiment, Kind, Published, StudyOptions

FORMAT_VERSION = 1

State = Literal["done", "partly", "outdated", "not yet run"]
StoppedBy = Literal["minutes", "epochs", "patience"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class Validation(_Record):
    """One point of a learning curve; filtered by train and valid facts alone."""

    step: int
    epoch: int
    """In which epoch, counted from 1."""
    minutes: float
    mrr: float


class TrainingRecord(_Record):
    """What a training did, and what it cost."""

    run: str
    """The run folder's name; experiments with equal settings share a training."""
    valid_mrr: float
    """Of the weights that were chosen."""
    chosen_step: int
    chosen_epoch: int
    epochs_done: float
    """Whole ones."""
    steps_done: int
    stopped_by: StoppedBy
    minutes: float
    queries_per_second: float
    """Median over the run, validations left out."""
    peak_memory_mib: float
    """Of the process that ended the training."""
    threads: int
    commit: str | None
    validations: list[Validation]


class Result(_Record):
    """A finished (experiment, seed)."""

    format_version: int = FORMAT_VERSION
    experiment: str
    kind: Kind
    seed: int
    dataset: str | None
    dataset_sha256: str | None
    """Of all names and facts of all splits; see ``dataset_checksum``."""
    published: Published | None
    training: TrainingRecord | None
    evaluation: EvaluationReport | None
    study: dict[str, Any] | None
    """What the experiment's kind measures besides."""
    measuring_minutes: float
    """After training."""
    peak_memory_mib: float
    """Of the process, since this experiment began in it."""
    threads: int
    config: dict[str, Any]
    options: StudyOptions
    environment: dict[str, Any]
    command: str
    finished_at: str


@dataclass(frozen=True)
class ResultStore:
    """The folder with result files."""

    folder: Path

    def path(self, experiment: Experiment, seed: int) -> Path:
        """Returns where a result is, or would be."""
        return self.folder.joinpath(*experiment.name.split("/"), f"seed{seed}.json")

    def write(self, experiment: Experiment, result: Result) -> Path:
        """Writes a result atomically, in place of an older one."""
        path = self.path(experiment, result.seed)
        write_json(path, result.model_dump(mode="json"))
        return path

    def read(self, experiment: Experiment, seed: int) -> Result | None:
        """Returns a stored result, or None.

        Raises:
            BundleError: the file is damaged.
        """
        path = self.path(experiment, seed)
        if not path.is_file():
            return None
        try:
            return Result.model_validate_json(path.read_text("utf-8"))
        except (OSError, ValidationError, UnicodeDecodeError) as error:
            raise BundleError(
                f"Expected a result in {path}, got: {str(error).splitlines()[0]}. Remove the file "
                "to run that experiment again."
            ) from error

    def current(self, experiment: Experiment, seed: int) -> Result | None:
        """Returns a stored result if it was made with the experiment's present settings."""
        result = self.read(experiment, seed)
        return result if result is not None and is_current(result, experiment) else None

    def all_current(self, experiment: Experiment) -> list[Result]:
        """Returns the present results of an experiment, one per seed, by seed."""
        stored = [path.stem for path in self.path(experiment, 0).parent.glob("seed*.json")]
        seeds = sorted(int(name.removeprefix("seed")) for name in stored if name[4:].isdecimal())
        results = [self.current(experiment, seed) for seed in seeds]
        return [result for result in results if result is not None]

    def state(self, experiment: Experiment) -> State:
        """Returns how much of an experiment is there."""
        current = {result.seed for result in self.all_current(experiment)}
        if current >= set(experiment.seeds):
            return "done"
        if current:
            return "partly"
        stored = any(self.path(experiment, seed).is_file() for seed in experiment.seeds)
        return "outdated" if stored else "not yet run"


def is_current(result: Result, experiment: Experiment) -> bool:
    """Whether a result's settings are those that the experiment has now."""
    if (result.kind, result.dataset) != (experiment.kind, experiment.dataset):
        return False
    if result.options != experiment.study:
        return False
    try:
        # Through the settings' own type: one that was added since counts at its default.
        stored = parse_config(result.config, where="a result")
    except ConfigError:
        return False
    return same_settings(stored, experiment.config(result.seed))


def same_settings(one: RunConfig, other: RunConfig) -> bool:
    """Whether two runs compute the same; threads do not matter.

    A setting that is left open fits any: it is chosen and stored when a run starts.
    """
    first, second = flat_settings(one), flat_settings(other)
    return all(
        first[key] == second[key] or (key in LEFT_OPEN and None in (first[key], second[key]))
        for key in first
        if key != "threads"
    )


def dataset_checksum(dataset: Dataset) -> str:
    """Returns a sha256 sum over all names and facts of all splits, in their order."""
    digest = hashlib.sha256()

    def add(part: Iterable[str] | Tensor) -> None:
        if isinstance(part, Tensor):
            digest.update(part.long().contiguous().numpy().astype("<i8").tobytes())
        else:
            digest.update(json.dumps(list(part)).encode())

    add(dataset.relations)
    for split in (dataset.train, dataset.valid, dataset.test):
        add(split.graph.entities)
        for facts in (split.graph.facts, split.facts, split.known):
            add(facts)
    return digest.hexdigest()
