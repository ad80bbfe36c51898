"""``pretrain``: one model for any graph, trained on several graphs at once."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knowformer.data.dataset import GraphSource
from knowformer.data.loading import load_dataset
from knowformer.data.mixture import FACTS_PER_GRAPH, mix
from knowformer.pipeline import train
from knowformer.reasoner import Reasoner
from knowformer.runs.folder import holds_run, load_config
from knowformer.training.clock import Clock
from knowformer.training.config import RunConfig
from knowformer.training.events import OnEvent
from knowformer.training.settings_file import build_config

# Views are the same for small graphs and for large ones; decision 0027 has the evidence.
SETTINGS: dict[str, Any] = {
    "model": {"relation_encoder": "graph", "view_size": 500},
    "training": {"carved_size": 6000, "hide": "facts", "validations_per_epoch": 12},
}


def pretrain(
    graphs: Sequence[GraphSource],
    out: str | Path,
    *,
    validate_on: Sequence[GraphSource] = (),
    facts_per_graph: int = FACTS_PER_GRAPH,
    settings: Mapping[str, Any] | None = None,
    config: RunConfig | None = None,
    resume: bool = False,
    on_event: OnEvent | Sequence[OnEvent] | None = None,
    clock: Clock | None = None,
) -> Reasoner:
    """Trains a model that reads relations from the graph, on the training facts of several graphs.

    Args:
        graphs: what ``train`` takes, several of them.
        out: the run folder.
        validate_on: graphs to choose weights on and to fit probabilities to, none of which is
            trained on; by default the validation facts of ``graphs``.
        facts_per_graph: how many validation facts each of them gives, at most.
        settings: by dotted name; what is not named is as ``SETTINGS`` says, or by default.
        config: all settings, complete, in place of ``settings``.
        resume: go on with the run in ``out`` if there is one.
        on_event: as of ``train``.
        clock: as of ``train``.

    Returns:
        A reasoner on the validation graphs; ``from_pretrained(out, graph=...)`` answers on others.
    """
    folder, goes_on = Path(out), resume and holds_run(Path(out))
    if config is None:
        config = build_config(defaults=starting_settings(folder, resume=resume), settings=settings)
    mixture = None
    if not goes_on:
        training, validation = ([load_dataset(g) for g in some] for some in (graphs, validate_on))
        mixture = mix(training, validation, facts_per_graph=facts_per_graph, seed=config.seed)
    return train(
        mixture, folder, config=config, resume=resume, on_event=on_event, clock=clock or Clock()
    )


def starting_settings(folder: Path, *, resume: bool) -> dict[str, Any]:
    """Returns the settings that a pretraining starts from, or those of the run that goes on."""
    goes_on = resume and holds_run(folder)
    return load_config(folder).model_dump(mode="json") if goes_on else SETTINGS
