"""Go on with a run: the settings it was started with, but for limits and what changes no result.

A run that is not finished goes on with its schedule, fitted to new limits if there are any. A
finished one is trained further if it is given more epochs or minutes in all than it has had.
"""

from pathlib import Path
from typing import Any

from knowformer.errors import ConfigError
from knowformer.runs.folder import (
    CHECKPOINT_FILE,
    load_config,
    save_config,
)
from knowformer.runs.metrics import change_metrics
from knowformer.training.checkpoint import Counters, read_counters, write_counters
from knowformer.training.config import RunConfig
from knowformer.training.defaults import LEFT_OPEN
from knowformer.training.settings_file import flat_settings

LIMITS = {"training.max_epochs", "training.max_minutes"}
CHANGEABLE = LIMITS | {"training.patience", "training.checkpoint_minutes", "threads", "backend"}


def continue_run(folder: Path, wanted: RunConfig | None) -> RunConfig:
    """Returns the settings that a run goes on with, stored if they are new.

    Args:
        folder: holds the run.
        wanted: settings; what they leave open is as it was chosen when the run started.

    Raises:
        ConfigError: a setting differs that cannot change, or a limit is already reached.
    """
    stored = load_config(folder)
    if wanted is None:
        return stored
    config = _left_open(wanted, stored)
    changed = _changed(folder, stored, config)
    checkpoint = folder / CHECKPOINT_FILE
    if changed & LIMITS and checkpoint.exists():
        counters = read_counters(checkpoint)
        if counters.finished:
            config = _trained_further(folder, config, counters, changed)
            counters.begin_part()
            # First: with the old limits, killed in between, the run is just over again.
            write_counters(checkpoint, counters)
            _forget_results(folder)
    if changed:
        save_config(folder, config)
    return config


def _left_open(wanted: RunConfig, stored: RunConfig) -> RunConfig:
    """Returns settings with what they leave open as it was chosen when the run started."""
    settings, chosen = wanted.model_dump(), flat_settings(stored)
    for key in LEFT_OPEN:
        table, name = key.split(".")
        if settings[table][name] is None:
            settings[table][name] = chosen[key]
    return RunConfig.model_validate(settings)


def _changed(folder: Path, stored: RunConfig, wanted: RunConfig) -> set[str]:
    """Returns the keys of the settings that differ."""
    before, now = flat_settings(stored), flat_settings(wanted)
    changed = {key for key in before if before[key] != now[key]}
    for key in sorted(changed - CHANGEABLE):
        raise ConfigError(
            f"Expected the settings that {folder} was started with, {key} = {before[key]!r}, got "
            f"{now[key]!r}. Leave the setting out to go on with that run, or choose another `out`."
        )
    return changed


def _forget_results(folder: Path) -> None:
    """Removes what was measured with weights that are about to change."""

    def kept(stored: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in stored.items() if key == "best_validation"}

    change_metrics(folder, kept)
    (folder / "calibration.json").unlink(missing_ok=True)


def _trained_further(
    folder: Path, config: RunConfig, counters: Counters, changed: set[str]
) -> RunConfig:
    """Returns the settings of a finished run that is given more; a limit not named is lifted."""
    training, epochs = config.training, counters.epochs_done
    minutes = counters.elapsed_seconds / 60.0
    done = {"training.max_epochs": epochs, "training.max_minutes": minutes}
    limits = {
        "training.max_epochs": training.max_epochs,
        "training.max_minutes": training.max_minutes,
    }
    for key in sorted(changed & LIMITS):
        limit, unit = limits[key], key.removeprefix("training.max_")
        if limit is not None and limit <= done[key]:
            raise ConfigError(
                f"Expected more than the {done[key]:.1f} {unit} that {folder} was trained for, got "
                f"{limit:g}. Give `{key}` in all, with what was before."
            )
    lifted: dict[str, Any] = {}
    if "training.max_minutes" not in changed:
        lifted["max_minutes"] = None
    if "training.max_epochs" not in changed and training.epochs <= epochs:
        lifted["max_epochs"] = epochs + training.epochs  # as many again
    return config.model_copy(update={"training": training.model_copy(update=lifted)})
