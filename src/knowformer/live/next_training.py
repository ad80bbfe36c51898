"""The data set of a run as live facts have made it: what the next training starts from."""

from pathlib import Path

import torch

from knowformer.data.dataset import Dataset, build_dataset
from knowformer.errors import BundleError, DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph, number_facts
from knowformer.live.facts import StoredChange, read_last_changes_of
from knowformer.live.snapshots import STORE_FILE, graph_of_store
from knowformer.runs.folder import load_run_dataset


def dataset_with_live_facts(run: str | Path, *, store: str | Path | None = None) -> Dataset:
    """Returns a run's data set with the facts that were added to it, without those removed.

    Facts that were added become training facts; the others stay in their splits. Verdicts do not
    count: what was accepted is there if it became a fact. A server may be using the store.

    Args:
        run: the run folder.
        store: the store that a server of the run keeps; in the run folder if not given.

    Raises:
        BundleError: there is no such run or store, or the store is of another graph.
        DataError: the run was tested on another graph than it was trained on.
    """
    folder = Path(run)
    path = folder / STORE_FILE if store is None else Path(store)
    dataset = load_run_dataset(folder)
    if dataset.is_inductive:
        raise DataError(
            f"Expected a run on one graph, got {folder}, which answers on another than it was "
            "trained on. Export its facts and add them to the files of the graph they belong to."
        )
    graph = dataset.test.known_graph()
    if graph_of_store(path) != graph.fingerprint:
        raise BundleError(
            f"Expected a store of changes to the graph of {folder} at {path}, got one of changes "
            "to another. Choose another `store`."
        )
    return _changed(dataset, graph, list(read_last_changes_of(path)))


def _changed(dataset: Dataset, graph: KnowledgeGraph, last: list[StoredChange]) -> Dataset:
    """Returns a data set after the last change of every fact that was changed."""
    is_there = graph.holds([change.fact for change in last])
    pairs = list(zip(last, is_there, strict=True))
    come = [change.fact for change, there in pairs if change.action == "add" and not there]
    gone = [change.fact for change, there in pairs if change.action == "remove" and there]
    relations = graph.relations
    entities = graph.entities.extended(name for head, _, tail in come for name in (head, tail))
    leaving = KnowledgeGraph(entities, relations, number_facts(gone, entities, relations))
    train, valid, test = (
        split.facts[~leaving.adjacency.has_fact(split.facts)]
        for split in (dataset.train, dataset.valid, dataset.test)
    )
    train = torch.cat([train, number_facts(come, entities, relations)])
    facts = [split.numpy() for split in (train, valid, test)]
    return build_dataset(dataset.name, facts, entities.names, relations, labels=dataset.labels)
