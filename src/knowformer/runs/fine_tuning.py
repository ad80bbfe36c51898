"""Start a run from the weights of another: what it inherits, and its initial weights."""

import logging
from pathlib import Path
from typing import Any

from torch import Tensor

from knowformer.errors import ConfigError, DataError
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer
from knowformer.model.transfer import transfer_weights
from knowformer.runs.folder import load_bundle, load_config
from knowformer.training.config import RunConfig

_logger = logging.getLogger(__name__)

# Settings of the model that do not shape its weights.
FREE = {"dropout", "view_size", "view_alpha", "view_prior"}


def inherited_settings(run: Path) -> dict[str, Any]:
    """Returns the settings that a run started from another takes over, unless told otherwise.

    The model's, and the loss, which gives its scores their meaning. A run that sees whole graphs
    lets the new graph's size decide whether it may.
    """
    source = load_config(run)
    model = source.model.model_dump(mode="json")
    if not source.model.view_size or source.model.relation_encoder == "graph":
        del model["view_size"]
    return {"model": model, "training": {"loss": source.training.loss}}


def initial_weights(run: Path, config: RunConfig, relations: Vocabulary) -> dict[str, Tensor]:
    """Returns the weights of a run for other relations, matched by name; new ones are random.

    Args:
        run: the run to start from.
        config: settings of the run to be started.
        relations: its relations.

    Raises:
        BundleError: the run to start from is missing or broken.
        ConfigError: its model has other settings.
        DataError: it knows none of the relations.
    """
    source = load_bundle(run)
    _check_same_model(run, source.config, config)
    if config.model.relation_encoder == "graph":
        return source.model.state_dict()  # no weight belongs to a relation
    known = source.dataset.relations
    new = [name for name in relations if name not in known]
    if len(new) == len(relations):
        raise DataError(
            f"Expected at least one relation that {run} was trained on, got none: {new[0]!r} and "
            f"{len(new) - 1:,} others are new to it, which knows {known.names[0]!r} and "
            f"{len(known) - 1:,} others. Train without `start_from`."
        )
    if new:
        shown = ", ".join(new[:5]) + (", ..." if len(new) > 5 else "")
        _logger.info(
            "%d of %d relations are new to %s and start at random: %s.",
            len(new),
            len(relations),
            run,
            shown,
        )
    model = KnowFormer.initialized(
        config.model, relations, seed=config.seed, backend=config.backend
    )
    transfer_weights(source.model, known, model, relations)
    return model.state_dict()


def _check_same_model(run: Path, source: RunConfig, config: RunConfig) -> None:
    theirs, ours = source.model.model_dump(), config.model.model_dump()
    for key, value in theirs.items():
        if key not in FREE and ours[key] != value:
            raise ConfigError(
                f"Expected the model of {run} to start from, model.{key} = {value!r}, got "
                f"{ours[key]!r}. Leave the setting out, or train without `start_from`."
            )
