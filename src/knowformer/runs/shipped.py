"""The model that ships with the package: it answers on any graph, without training on it."""

import logging
from dataclasses import replace
from pathlib import Path

import torch

from knowformer.data.dataset import Dataset, GraphSource, Split
from knowformer.data.loading import load_dataset, load_graph
from knowformer.errors import ConfigError, DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.runs.folder import (
    ENVIRONMENT_FILE,
    Bundle,
    InitialWeights,
    load_bundle,
    read_environment,
    save_weights,
    start_run,
    write_json,
)

SHIPPED = "shipped"
"""What the model is called where a run is asked for."""
SHIPPED_FOLDER = Path(__file__).parents[1] / "shipped"

_logger = logging.getLogger(__name__)


def shipped_for(graph: GraphSource) -> Bundle:
    """Returns the shipped model with a graph in the place of the data that it was trained on.

    Raises:
        DataError: the graph's files are not as expected.
    """
    bundle = load_bundle(SHIPPED_FOLDER)
    _logger.info(
        "The model that ships with knowformer answers; it was not trained on this graph. "
        "`evaluate(graph)` says how far to trust it, `train(graph)` makes one for this graph."
    )
    return replace(bundle, dataset=_split(graph, bundle.config.seed), was_trained_on_it=False)


def _split(graph: GraphSource, seed: int) -> Dataset:
    """Returns a graph as a data set; one too small to be split has nothing held out."""
    try:
        return load_dataset(graph, seed=seed)
    except DataError:
        return unsplit(load_graph(graph), "graph")


def unsplit(graph: KnowledgeGraph, name: str) -> Dataset:
    """Returns a data set of training facts alone."""
    facts, none = graph.facts, graph.facts[:0]
    valid, test = Split("valid", graph, none, facts), Split("test", graph, none, facts)
    return Dataset(name, Split("train", graph, facts, facts), valid, test)


def ship(run: Path, folder: Path) -> None:
    """Writes the model of a run without the facts that it was trained on.

    Its calibration stays behind as well: fitted where a question has one or two answers among
    thousands, it gives certain answers of a small, dense graph less than a hundredth.

    Raises:
        BundleError: the run is missing or broken.
        ConfigError: its model has weights for each relation, and fits no other graph.
    """
    bundle = load_bundle(run)
    if bundle.fixed_relations is not None:
        raise ConfigError(
            f"Expected a run with model.relation_encoder = 'graph', got {run}, whose weights "
            "belong to its own relations."
        )
    name = bundle.dataset.name
    start_run(folder, bundle.config, unsplit(no_graph(), name))
    write_json(folder / ENVIRONMENT_FILE, read_environment(run))  # of the training, not of this
    save_weights(folder, bundle.model, link=bundle.link)


def settle(bundle: Bundle, folder: Path) -> Path:
    """Makes a run of the shipped model and the graph that it answers on, and returns its folder.

    A training that goes on with it starts from the model, on the graph as it is.

    Raises:
        BundleError: the folder holds a run already.
    """
    training = bundle.config.training.model_copy(update={"carved_size": None})
    config = bundle.config.model_copy(update={"training": training})
    initial = InitialWeights(bundle.folder, bundle.model.state_dict())
    start_run(folder, config, bundle.dataset, initial=initial)
    save_weights(folder, bundle.model, link=bundle.link, was_trained_on_it=False)
    return folder


def no_graph() -> KnowledgeGraph:
    """Returns a graph without anything: in the place of facts that do not ship with a model."""
    none = torch.zeros(0, 3, dtype=torch.long)
    return KnowledgeGraph(Vocabulary([], kind="entity"), Vocabulary([], kind="relation"), none)
