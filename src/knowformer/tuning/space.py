"""Space: which settings a search varies, and the values that it tries for each.

A value is kept as it is typed after ``key=``: trials, stored searches and printed commands then all
say the same, and whatever can be set can be varied.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError
from knowformer.training.defaults import WHOLE_GRAPH_LIMIT
from knowformer.training.settings_file import build_config, flat_settings

Space = dict[str, list[str]]

ALWAYS: Space = {
    "training.learning_rate": ["0.001", "0.002", "0.005", "0.01"],
    "training.batch_size": ["8", "16", "32"],
    "training.targets": ["some", "one"],
    "training.hide": ["facts", "links"],
    "model.dropout": ["0", "0.1", "0.3"],
    "model.num_layers": ["2", "3"],
    "model.num_query_key_hops": ["1", "2"],
    "model.num_value_hops": ["2", "3"],
}
LARGE: Space = {"model.view_size": ["500", "1000", "2000"]}
"""Varied where a query does not see the whole graph."""
INDUCTIVE: Space = {"training.relation_swaps": ["0", "0.1"]}
"""Varied where the model will answer on another graph."""


def default_space(dataset: Dataset, *, fixed: Collection[str] = ()) -> Space:
    """Returns what is worth varying on a data set, but for the settings that are given."""
    space = dict(ALWAYS)
    if len(dataset.train.graph.entities) > WHOLE_GRAPH_LIMIT:
        space |= LARGE
    if dataset.is_inductive:
        space |= INDUCTIVE
    return {key: values for key, values in space.items() if key not in fixed}


def parse_space(vary: Sequence[str], assignments: Sequence[str] = ()) -> Space:
    """Parses settings and their values, such as ``model.dropout=0,0.1,0.3``.

    Args:
        vary: the settings to vary.
        assignments: settings of every trial, which a value must agree with.

    Raises:
        ConfigError: a setting that does not exist, or a value that it cannot have.
    """
    space: Space = {}
    for text in vary:
        key, _, listed = text.partition("=")
        key, values = key.strip(), [value.strip() for value in listed.split(",")]
        if not key or not all(values):
            raise ConfigError(
                f"Expected a setting and its values, such as model.dropout=0,0.1,0.3, got {text!r}."
            )
        space[key] = list(dict.fromkeys(values))
    varied = [f"{key}={value}" for key, values in space.items() for value in values]
    for setting in varied:
        _check_possible(setting, varied, list(assignments))
    return space


def _check_possible(setting: str, varied: Sequence[str], assignments: list[str]) -> None:
    """Refuses a value that is impossible, unless it goes with a value of another setting."""
    try:
        build_config(assignments=[*assignments, setting])
    except ConfigError:
        for other in varied:
            if other.partition("=")[0] != setting.partition("=")[0]:
                with suppress(ConfigError):
                    build_config(assignments=[*assignments, other, setting])
                    return
        raise


def present_values(space: Space, settings: dict[str, Any]) -> dict[str, str]:
    """Returns those values of a space that settings have already, to try them first.

    Args:
        space: the settings that are varied.
        settings: nested, as in a TOML file.
    """
    present: dict[str, str] = {}
    now = flat_settings(build_config(defaults=settings))
    for key, values in space.items():
        for value in values:
            assigned = build_config(defaults=settings, assignments=[f"{key}={value}"])
            if flat_settings(assigned)[key] == now[key]:
                present[key] = value
    return present
