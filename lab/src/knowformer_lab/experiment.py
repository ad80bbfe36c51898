"""An experiment is a TOML file in ``experiments/TABLE/``: what runs, and what was published.

    about = "..."                   one line for people
    kind = "ranking"                see ``Kind``
    like = "inductive/wn18rr_v1"    data set, seeds, budget and settings of another file, if any
    dataset = "wn18rr_v1"           a name of the catalogue
    seeds = [0, 1, 2]
    epochs = 4                      passes over the training queries, if not the data set's own,
    minutes = 9                     or a limit of time; passes end the same on any machine
    settings.model.hidden_dim = 64  only what differs from the data set's own settings, or from the
                                    defaults if the kind is validation
    note = "..."                    why the paper's figure is missed, or not made again yet
    [published]                     the paper's figures, and their table
    [[runs]] or [[grid]]            several runs that differ in a few settings; see below

A file with ``[[runs]]`` defines one experiment per entry, TABLE/FILE/NAME; a file with
``[[grid]]`` for one per combination of the axes' values.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from knowformer.data.loading import catalogue_name
from knowformer.errors import ConfigError, suggest
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import merge_settings, parse_config, recommended_settings

Kind = Literal["ranking", "validation", "selection", "paths", "attention", "bound", "expressivity"]
"""What an experiment does:

    ranking       trains, then ranks the test facts (with one relation also AUROC and AP)
    validation    trains, and never looks at a test fact: for searching settings
    selection     ranks the test facts with the weights of every validation of a run
    paths         ranks them by length of the shortest path, and on graphs with facts missing
    attention     follows the attention of the answers to given questions
    bound         a trained model's linear similarities against exponential ones (theorem 1)
    expressivity  what RA-WL2 tells apart against what an attention layer does (theorem 2)
"""

INSTALLED_FOLDER = Path(__file__).with_name("experiments")
"""The copy inside an installed package: files without results, only read."""
RESULTS_FOLDER = "results"
TABLES = (
    "inductive",
    "transductive",
    "ablation",
    "layers",
    "views",
    "paths",
    "homogeneous",
    "attention",
    "selection",
    "theory",
    "search",
)
"""Folders in the order in which they are listed, run and reported; others come after them."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Published(_Strict):
    """Figures of the paper; ``runs`` has them by the name of a run."""

    table: str
    metrics: dict[str, float] = {}
    runs: dict[str, dict[str, float]] = {}

    def of_run(self, name: str | None) -> "Published | None":
        """Returns the figures of one run, or None if the paper has none."""
        metrics = self.metrics if name is None else self.runs.get(name, {})
        return Published(table=self.table, metrics=metrics) if metrics else None


class AskedQuestion(_Strict):
    """A question (head, relation, ?) by the data set's own names."""

    head: str
    relation: str
    published_as: str | None = None
    """How the paper writes it."""


class StudyOptions(_Strict):
    """What a kind needs to know besides settings; each has a default."""

    dropped: list[float] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    """paths: fractions of the test graph's facts that are left out."""
    max_length: int = Field(default=6, ge=1)
    """paths: longer shortest paths are counted together."""
    num_queries: int = Field(default=32, ge=1)
    """bound: queries whose similarities are measured."""
    num_graphs: int = Field(default=40, ge=2)
    """expressivity: random graphs that are compared."""
    questions: list[AskedQuestion] = []
    """attention: what is asked; each needs a test fact."""


class NamedRun(_Strict):
    """One run of a file, and how it differs from the others."""

    name: str
    dataset: str | None = None
    epochs: float | None = Field(default=None, gt=0)
    note: str | None = None
    settings: dict[str, Any] = {}


class GridAxis(_Strict):
    """One setting and the values it takes."""

    name: str
    """Stands before the value in a run's name: L1, L2."""
    setting: str
    values: list[Any] = Field(min_length=1)

    def points(self) -> list[tuple[str, dict[str, Any]]]:
        """Returns each value's part of the name, and its nested setting."""
        points: list[tuple[str, dict[str, Any]]] = []
        for value in self.values:
            nested: Any = value
            for part in reversed(self.setting.split(".")):
                nested = {part: nested}
            points.append((f"{self.name}{value}", nested))
        return points


class ExperimentFile(_Strict):
    """A file as it is written."""

    kind: Kind
    about: str
    like: str | None = None
    dataset: str | None = None
    seeds: list[int] | None = Field(default=None, min_length=1)
    epochs: float | None = Field(default=None, gt=0)
    minutes: float | None = Field(default=None, gt=0)
    note: str | None = None
    settings: dict[str, Any] = {}
    study: StudyOptions = StudyOptions()
    published: Published | None = None
    runs: list[NamedRun] = []
    grid: list[GridAxis] = []

    @model_validator(mode="after")
    def _one_way_to_name_runs(self) -> "ExperimentFile":
        if self.runs and self.grid:
            raise ValueError("runs and grid exclude each other")
        return self

    @model_validator(mode="after")
    def _questions_for_attention(self) -> "ExperimentFile":
        if bool(self.study.questions) != (self.kind == "attention"):
            raise ValueError("study.questions are for the kind attention, which needs some")
        return self

    def variants(self) -> Iterator[NamedRun | None]:
        """Yields the runs that the file defines; None is the file itself."""
        for combination in product(*(axis.points() for axis in self.grid)) if self.grid else ():
            settings: dict[str, Any] = {}
            for _, setting in combination:
                merge_settings(settings, deepcopy(setting))
            yield NamedRun(name="_".join(name for name, _ in combination), settings=settings)
        yield from self.runs
        if not self.grid and not self.runs:
            yield None


@dataclass(frozen=True)
class Experiment:
    """One thing to run, with one result per seed."""

    name: str
    """TABLE/FILE or TABLE/FILE/RUN."""
    kind: Kind
    about: str
    dataset: str | None
    seeds: tuple[int, ...]
    epochs: float | None
    minutes: float | None
    note: str | None = field(repr=False)
    """Why the paper's figure is missed, or not made again yet."""
    settings: Mapping[str, Any] = field(repr=False)
    study: StudyOptions = field(repr=False)
    published: Published | None = field(repr=False)

    @property
    def table(self) -> str:
        """The folder that the experiment is in."""
        return self.name.split("/")[0]

    @property
    def group(self) -> str:
        """The file that the experiment is in, without its folder."""
        return self.name.split("/")[1]

    @property
    def variant(self) -> str:
        """The run's name inside its file; empty if the file has just one."""
        return "/".join(self.name.split("/")[2:])

    @property
    def budget(self) -> str:
        """What one training may take, in words; empty if there is none."""
        if self.dataset is None:
            return ""
        training = self.config(0).training
        if training.max_minutes is not None:
            return f"{training.max_minutes:g} minutes"
        return f"{training.epochs:g} epoch{'' if training.epochs == 1 else 's'}"

    def config(self, seed: int, *, threads: int = 0) -> RunConfig:
        """Returns the complete settings; later wins: the data set's own, the file's, the seed.

        A search starts from the defaults: what it finds becomes the data set's own, and must not
        change the trials that found it.
        """
        name = None if self.kind == "validation" else self.dataset
        settings = recommended_settings(catalogue_name(name) if name else None)
        merge_settings(settings, deepcopy(dict(self.settings)))
        budget = {"max_epochs": self.epochs, "max_minutes": self.minutes}
        given = {key: value for key, value in budget.items() if value is not None}
        merge_settings(settings, {"training": given})
        merge_settings(settings, {"seed": seed, "threads": threads})
        return parse_config(settings, where=f"experiment {self.name}")

    def command(self, seed: int) -> str:
        """Returns what to type to make the result again."""
        return f"knowformer reproduce {self.name} --seed {seed}"


def find_folder(given: Path | None = None) -> Path:
    """Returns the folder with experiments: the given one, one from here, or the installed copy.

    Raises:
        ConfigError: there is none.
    """
    here = [Path("experiments"), Path("lab/experiments")]
    for folder in [given] if given else [*here, INSTALLED_FOLDER]:
        if any(folder.glob("*/*.toml")):
            return folder
    raise ConfigError(
        f"Expected experiments as TOML files in {given or 'experiments'}/TABLE/, found none. Run "
        "this where the project's folder 'lab' is, or name one with --experiments."
    )


def load_experiments(folder: Path) -> dict[str, Experiment]:
    """Loads every experiment of a folder by name, table by table.

    Raises:
        ConfigError: a file is not as expected; the message names it.
    """
    files = {
        f"{path.parent.name}/{path.stem}": _read_file(path)
        for path in sorted(folder.glob("*/*.toml"), key=_order)
        if path.parent.name != RESULTS_FOLDER
    }
    experiments: dict[str, Experiment] = {}
    for name, file in files.items():
        whole = _with_inherited(name, file, files)
        for run in whole.variants():
            experiment = _build(name, whole, run)
            experiment.config(0)  # settings that cannot be are refused before anything runs
            if experiment.name in experiments:
                raise ConfigError(
                    f"Expected each run's name once in {name}.toml, got "
                    f"{experiment.variant!r} twice."
                )
            experiments[experiment.name] = experiment
    return experiments


def choose(experiments: Mapping[str, Experiment], names: list[str]) -> list[Experiment]:
    """Returns the experiments that names select: all, a table, a file or a run.

    Raises:
        ConfigError: a name selects nothing.
    """
    chosen: dict[str, Experiment] = {}
    for given in names:
        name = given.strip("/").removesuffix(".toml")
        part = {
            full: experiment
            for full, experiment in experiments.items()
            if name == "all" or full == name or full.startswith(f"{name}/")
        }
        if not part:
            known = {"/".join(full.split("/")[:n]) for full in experiments for n in (1, 2, 3)}
            raise ConfigError(
                f"Expected the name of a table or of an experiment, got {given!r}."
                f"{suggest(name, sorted(known))} 'knowformer reproduce' lists them."
            )
        chosen |= part
    return list(chosen.values())


def _order(path: Path) -> tuple[int, str, str]:
    table = path.parent.name
    return (TABLES.index(table) if table in TABLES else len(TABLES), table, path.stem)


def _read_file(path: Path) -> ExperimentFile:
    try:
        return ExperimentFile.model_validate(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"Expected an experiment as TOML at {path}, got: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(
            f"Expected an experiment in {path}, got for {key}: {first['msg']}."
        ) from None


def _with_inherited(
    name: str, file: ExperimentFile, files: Mapping[str, ExperimentFile]
) -> ExperimentFile:
    """Returns the file with what it takes over from the one that it is like."""
    seen = [name]
    while file.like is not None:
        if file.like not in files or file.like in seen:
            raise ConfigError(
                f"Expected 'like' to name another file, got {file.like!r} in {seen[-1]}.toml."
                f"{suggest(file.like, files)}"
            )
        seen.append(file.like)
        other = files[file.like]
        settings = deepcopy(other.settings)
        merge_settings(settings, deepcopy(file.settings))
        file = file.model_copy(
            update={
                "like": other.like,
                "dataset": file.dataset or other.dataset,
                "seeds": file.seeds or other.seeds,
                "epochs": file.epochs or (None if file.minutes else other.epochs),
                "minutes": file.minutes or (None if file.epochs else other.minutes),
                "settings": settings,
            }
        )
    return file


def _build(name: str, file: ExperimentFile, run: NamedRun | None) -> Experiment:
    settings = deepcopy(file.settings)
    dataset = file.dataset
    if run is not None:
        if not _NAME.fullmatch(run.name):
            raise ConfigError(
                "Expected a run's name of letters, digits and _.+-, got "
                f"{run.name!r} in {name}.toml."
            )
        merge_settings(settings, deepcopy(run.settings))
        dataset = run.dataset or dataset
    if (dataset is None) != (file.kind == "expressivity"):
        raise ConfigError(
            f"Expected a dataset in {name}.toml, or in each of its runs, unless its kind is "
            f"expressivity; got {dataset!r} with kind {file.kind!r}."
        )
    published = file.published.of_run(run.name if run else None) if file.published else None
    return Experiment(
        name=name if run is None else f"{name}/{run.name}",
        kind=file.kind,
        about=file.about,
        dataset=dataset,
        seeds=tuple(dict.fromkeys(file.seeds or [0])),
        epochs=(run.epochs if run else None) or file.epochs,
        minutes=file.minutes,
        note=(run.note if run else None) or file.note,
        settings=settings,
        study=file.study,
        published=published,
    )
