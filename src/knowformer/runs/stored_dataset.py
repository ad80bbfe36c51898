"""The data set of a run folder: names in dataset.json, facts as ids in facts.safetensors.

A large data set is in ``mapped/`` instead: see ``data.mapped_dataset``.

Kernels go by these ids without looking again, so none is taken over unseen: every name is there
once, and every id stands for one.
"""

import json
from pathlib import Path
from typing import Annotated

import torch
from jaxtyping import Int
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from knowformer.choices import SplitName
from knowformer.data.dataset import SPLIT_NAMES, Dataset, Split
from knowformer.data.labels import Labels
from knowformer.data.mapped_dataset import holds_mapped, link_mapped, open_mapped
from knowformer.errors import BundleError, DataError
from knowformer.graph.id_ranges import check_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.runs.stored_files import first_fault, read_text
from knowformer.storage.atomic_files import write_text
from knowformer.storage.tensor_files import read_tensors, write_tensors

FORMAT_VERSION = 1
NAMES_FILE = "dataset.json"
FACTS_FILE = "facts.safetensors"


class _DatasetFile(BaseModel):
    """dataset.json."""

    # pydantic keeps strings that come again, which takes as long as reading names that do not.
    model_config = ConfigDict(strict=True, cache_strings="none")

    format_version: int = Field(ge=1)
    name: str
    relations: list[str]
    graphs: list[list[str]] = Field(min_length=1, max_length=len(SPLIT_NAMES))
    """Entity names of each graph."""
    graph_of_split: dict[SplitName, Annotated[int, Field(ge=0)]]
    entity_names: dict[str, str] = {}
    """Readable names by id, where the data set has them."""
    relation_names: dict[str, str] = {}


def save_run_dataset(folder: Path, dataset: Dataset) -> None:
    """Writes a data set into a run folder; a mapped one shares its files with it."""
    if dataset.folder is not None:
        link_mapped(dataset.folder, folder)
        return
    graphs = _distinct_graphs(dataset)
    splits = {name: dataset.split(name) for name in SPLIT_NAMES}
    names = _DatasetFile(
        format_version=FORMAT_VERSION,
        name=dataset.name,
        relations=list(dataset.relations),
        graphs=[list(graph.entities) for graph in graphs],
        graph_of_split={name: graphs.index(splits[name].graph) for name in SPLIT_NAMES},
        entity_names=dict(dataset.labels.entities),
        relation_names=dict(dataset.labels.relations),
    )
    facts = {f"graph.{number}": graph.facts for number, graph in enumerate(graphs)}
    for name, split in splits.items():
        facts |= {f"{name}.facts": split.facts, f"{name}.known": split.known}
    compact = {name: tensor.to(torch.int32) for name, tensor in facts.items()}
    write_tensors(folder / FACTS_FILE, compact)
    write_text(folder / NAMES_FILE, json.dumps(names.model_dump(), ensure_ascii=False))


def load_run_dataset(folder: Path) -> Dataset:
    """Loads the data set that a run was trained on, from the run folder alone.

    Raises:
        BundleError: a file is missing or damaged, or an id stands for no name.
    """
    if holds_mapped(folder):
        return open_mapped(folder)
    names = _read_names(folder / NAMES_FILE)
    relations = _vocabulary(names.relations, "relation", folder)
    path = folder / FACTS_FILE
    compact, _ = read_tensors(path)

    def facts_of(name: str, graph: int) -> Tensor:
        if name not in compact:
            raise BundleError(f"Expected facts for every split in {path}, found no {name!r}.")
        return _checked(path, name, compact[name], len(names.graphs[graph]), len(relations))

    graphs = [
        KnowledgeGraph(
            _vocabulary(entities, "entity", folder), relations, facts_of(f"graph.{number}", number)
        )
        for number, entities in enumerate(names.graphs)
    ]

    def split(name: SplitName) -> Split:
        of = names.graph_of_split[name]
        return Split(name, graphs[of], facts_of(f"{name}.facts", of), facts_of(f"{name}.known", of))

    splits = map(split, SPLIT_NAMES)
    return Dataset(names.name, *splits, labels=Labels(names.entity_names, names.relation_names))


def _read_names(path: Path) -> _DatasetFile:
    try:
        names = _DatasetFile.model_validate_json(read_text(path))
    except ValidationError as error:
        raise BundleError(
            f"Expected a data set's names in {path}, got: {first_fault(error)}."
        ) from None
    if names.format_version > FORMAT_VERSION:
        raise BundleError(
            f"Expected format {FORMAT_VERSION} or older in {path}, got {names.format_version}. "
            "Update knowformer."
        )
    for split in SPLIT_NAMES:
        number = names.graph_of_split.get(split)
        if number is None or number >= len(names.graphs):
            raise BundleError(
                f"Expected one of {len(names.graphs)} graphs for the split {split} in {path}, got "
                f"{'none' if number is None else number}. Copy the folder again, or train anew."
            )
    return names


def _vocabulary(names: list[str], kind: str, folder: Path) -> Vocabulary:
    vocabulary = Vocabulary(names, kind=kind)
    if len(vocabulary) < len(names):
        raise BundleError(
            f"Expected every {kind} once in {folder / NAMES_FILE}, found "
            f"{len(names) - len(vocabulary):,} names again. Copy the folder again, or train anew."
        )
    return vocabulary


def _checked(
    path: Path, name: str, facts: Tensor, num_entities: int, num_relations: int
) -> Int[Tensor, "N 3"]:
    """Returns a copy of the file's facts, which is what was checked, whatever the file becomes."""
    is_table = facts.ndim == 2 and facts.shape[1] == 3
    if facts.dtype not in (torch.int32, torch.int64) or not is_table:
        raise BundleError(
            f"Expected facts as rows of three int32 in {name!r} of {path}, got "
            f"{facts.dtype} of shape {tuple(facts.shape)}. Copy the folder again, or train anew."
        )
    copied = facts.to(torch.int64, copy=True)
    sizes = {"num_entities": num_entities, "num_relations": num_relations}
    try:
        check_facts(copied, **sizes, where=f"{name!r} of {path}")
    except DataError as error:
        raise BundleError(f"{error} Copy the folder again, or train anew.") from None
    return copied


def _distinct_graphs(dataset: Dataset) -> list[KnowledgeGraph]:
    graphs: list[KnowledgeGraph] = []
    for name in SPLIT_NAMES:
        graph = dataset.split(name).graph
        if not any(graph is other for other in graphs):
            graphs.append(graph)
    return graphs
