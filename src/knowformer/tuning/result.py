"""TuningResult: the trials of a search as a table, and the best one as a command and a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from knowformer.errors import ConfigError
from knowformer.runs.continuing import LIMITS
from knowformer.tables import Column, TableView, Tabular
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import flat_settings, merge_settings
from knowformer.tuning.study import Trial

BEST_FILE = "best.toml"


@dataclass(frozen=True, repr=False)
class TuningResult(Tabular):
    """What a search has found so far."""

    graph: str
    folder: Path
    settings: Sequence[str]
    """Of every trial, as ``key=value``."""
    trials: Sequence[Trial]

    @property
    def best(self) -> Trial:
        """The complete trial with the highest validation MRR.

        Raises:
            ConfigError: there is none.
        """
        complete = [trial for trial in self.trials if trial.state == "complete"]
        if not complete:
            errors = [trial.error for trial in self.trials if trial.error]
            why = f"The last one failed: {errors[-1]}" if errors else "Give more `max_minutes`."
            raise ConfigError(f"Expected a complete trial in {self.folder}, found none. {why}")
        return max(complete, key=lambda trial: trial.valid_mrr or 0.0)

    @property
    def best_settings(self) -> list[str]:
        """What to train with, as ``key=value``; limits of every trial are not among it."""
        given = [text for text in self.settings if text.partition("=")[0].strip() not in LIMITS]
        return given + [f"{key}={value}" for key, value in self.best.settings.items()]

    def table(self) -> TableView:
        """Returns the trials, best first; those that were stopped early after all complete ones."""
        order = {"complete": 0, "pruned": 1, "failed": 2}
        trials = sorted(self.trials, key=lambda t: (order[t.state], -(t.valid_mrr or 0.0)))
        return TableView(
            title=f"{self.graph}: {len(trials)} trials",
            columns=[
                Column("trial", is_number=True),
                Column("valid MRR", is_number=True),
                Column("facts", is_number=True),
                Column("state"),
                Column("settings"),
            ],
            rows=[
                [t.number, t.valid_mrr, t.num_facts, t.state, t.error or _short(t.settings)]
                for t in trials
            ],
            caption="judged by validation facts alone, filtered by train and valid facts",
        )


def _short(settings: dict[str, str]) -> str:
    """Returns settings without the table that they stand in."""
    return ", ".join(f"{key.partition('.')[2] or key}={value}" for key, value in settings.items())


def best_toml(result: TuningResult, config: RunConfig) -> str:
    """Returns the best settings as a file of settings.

    Args:
        result: the search.
        config: the best trial's settings, complete.
    """
    best, values = result.best, flat_settings(config)
    nested: dict[str, Any] = {}
    for key in [setting.partition("=")[0].strip() for setting in result.best_settings]:
        table, _, name = key.rpartition(".")
        value = 0 if values[key] is None else values[key]  # TOML has no null: 0 turns off
        merge_settings(nested, {table: {name: value}} if table else {name: value})
    header = f"# Validation MRR {best.valid_mrr:.4f} in trial {best.number} of a search on "
    return f"{header}{result.graph}.\n{tomli_w.dumps(nested)}"
