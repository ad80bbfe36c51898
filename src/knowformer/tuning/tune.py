"""``tune``: searches settings by short runs, within minutes; test facts are never looked at."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from knowformer.data.dataset import Dataset, GraphSource
from knowformer.data.loading import load_dataset
from knowformer.errors import BundleError, ConfigError, KnowformerError, require_package
from knowformer.model.knowformer import KnowFormer
from knowformer.pipeline import starting_settings, train
from knowformer.runs.folder import holds_run, read_metrics, sole_trainer
from knowformer.runs.stored_files import first_fault, read_text
from knowformer.storage.atomic_files import write_text
from knowformer.training.clock import Clock
from knowformer.training.config import RunConfig
from knowformer.training.events import ValidationEvent
from knowformer.training.settings_file import build_config, merge_settings
from knowformer.training.stopping import StopTraining
from knowformer.tuning.result import BEST_FILE, TuningResult, best_toml
from knowformer.tuning.space import Space, default_space, parse_space, present_values
from knowformer.tuning.study import RunningTrial, Study, quiet_optuna

SEARCH_FILE = "search.json"
NUM_TRIALS = 10  # that the time is divided by, if no number is given
USED_SHARE = 0.95  # of the time, divided among the trials; the rest is between them
END_SECONDS = 2.0  # for the table, and the end of the process
SHORTEST_TRIAL = 0.7  # of a trial's time: with less left, none is begun
VALIDATIONS_PER_EPOCH = 4  # more than usual: a trial is pruned at one

OnTrial = Callable[[int, int], None]


@dataclass(frozen=True)
class _Search:
    """search.json: what a search was started with, and must go on with."""

    dataset: str
    settings: list[str]
    space: Space
    trial_minutes: float


def tune(
    graph: GraphSource,
    out: str | Path,
    *,
    max_minutes: float,
    trials: int | None = None,
    vary: Sequence[str] = (),
    assignments: Sequence[str] = (),
    on_trial: OnTrial | None = None,
    clock: Clock | None = None,
) -> TuningResult:
    """Searches settings by validation MRR; killed, the same call goes on.

    Args:
        graph: a catalogue name, a folder, a triples file, or a graph or a data set already
            loaded.
        out: gets the journal, a run folder per trial, and ``best.toml``.
        max_minutes: of this call; each trial has its share, the same when the search goes on.
        trials: how many, with those before; by default as many as there is time for.
        vary: settings and their values, such as ``model.dropout=0,0.1,0.3``, in place of the
            default space.
        assignments: ``key=value``, settings of every trial.
        on_trial: called with the number of trials done, and expected, after each.
        clock: what ``max_minutes`` is counted on; by default it starts now.

    Raises:
        ConfigError: a setting is impossible, the time too short for a trial, or all trials failed.
        MissingPackageError: optuna is not installed.
    """
    require_package("optuna", extra="tune", purpose="search settings")
    folder, clock = Path(out), clock or Clock()
    if holds_run(folder):
        raise BundleError(
            f"Expected a folder for a search, found a run in {folder}. Choose another `out`."
        )
    settings = starting_settings(graph)
    base = build_config(defaults=settings, assignments=list(assignments))
    dataset = load_dataset(graph, seed=base.seed)
    fixed = {assignment.partition("=")[0].strip() for assignment in assignments}
    space = parse_space(vary, assignments) if vary else default_space(dataset, fixed=fixed)
    num_trials = trials or NUM_TRIALS
    seconds = 60.0 * max_minutes - END_SECONDS
    minutes = USED_SHARE * (seconds - clock.elapsed()) / 60.0 / num_trials
    search = _Search(dataset.name, list(assignments), space, minutes)
    search = _begin_or_go_on(folder, search)
    with sole_trainer(folder), quiet_optuna():
        study = Study(folder, space, seed=base.seed)
        if study.is_new:
            study.propose(present_values(space, settings))
        trial_runs = _Trials(dataset.without_test(), settings, search)
        while trials is None or len(study.trials()) < trials:
            left = (seconds - clock.elapsed()) / 60.0
            if left < SHORTEST_TRIAL * search.trial_minutes or left <= 0:
                break
            trial_runs.run(study.ask(), min(left, search.trial_minutes))
            if on_trial is not None:
                done = len(study.trials())
                on_trial(done, max(done, num_trials))
        asked = str(graph) if isinstance(graph, str | Path) else dataset.name
        result = TuningResult(asked, folder, search.settings, study.trials())
        best = result.best  # before the file: there may be none
        write_text(folder / BEST_FILE, best_toml(result, trial_runs.config_of(best.settings)))
    return result


def _begin_or_go_on(folder: Path, search: _Search) -> _Search:
    """Stores what a search is about, or checks that it is the one to go on with."""
    path = folder / SEARCH_FILE
    if not path.exists():
        if search.trial_minutes <= 0:
            raise ConfigError(
                "Expected time for a trial, found none left after the start. Give more "
                "`max_minutes`."
            )
        write_text(path, json.dumps(asdict(search), indent=2) + "\n")
        return search
    stored = _read_search(path)
    for key, now in asdict(search).items():
        before = getattr(stored, key)
        if key != "trial_minutes" and before != now:
            raise ConfigError(
                f"Expected the search that {folder} was started with, {key} {before}, got {now}. "
                "Choose another `out`."
            )
    return stored


def _read_search(path: Path) -> _Search:
    try:
        return TypeAdapter(_Search).validate_json(read_text(path))
    except ValidationError as error:
        raise BundleError(
            f"Expected what a search was started with in {path}, got: {first_fault(error)}. Choose "
            "another `out`."
        ) from None


@dataclass(frozen=True)
class _Trials:
    """What all trials have in common."""

    dataset: Dataset
    """Without test facts."""
    recommended: dict[str, Any]
    search: _Search

    def run(self, trial: RunningTrial, minutes: float) -> None:
        """Trains and judges a trial; an error ends it, and not the search."""
        clock, is_pruned = Clock(), False

        def judge(model: KnowFormer, event: ValidationEvent) -> None:
            nonlocal is_pruned
            del model
            time_share = clock.elapsed() / (60.0 * minutes)
            if trial.is_hopeless(event["valid_mrr"], time_share=time_share):
                is_pruned = True
                raise StopTraining("trials before had reached more by then")

        try:
            config = self.config_of(trial.settings, f"training.max_minutes={minutes}")
            train(
                self.dataset,
                trial.folder,
                config=config,
                on_validation=judge,
                calibrate=False,
                clock=clock,
            )
        except KnowformerError as error:
            trial.fail(str(error))
            return
        best: dict[str, Any] = read_metrics(trial.folder)["best_validation"]
        if is_pruned:
            trial.prune(best.get("num_facts"))
        else:
            trial.complete(best["valid_mrr"], best.get("num_facts"))

    def config_of(self, settings: dict[str, str], *more: str) -> RunConfig:
        """Returns the settings of a trial, complete."""
        defaults: dict[str, Any] = {"training": {"validations_per_epoch": VALIDATIONS_PER_EPOCH}}
        merge_settings(defaults, self.recommended)
        varied = [f"{key}={value}" for key, value in settings.items()]
        return build_config(defaults=defaults, assignments=[*self.search.settings, *varied, *more])
