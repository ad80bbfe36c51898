"""Data sets of each layout, as folders."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.storage.triples_io import NamedTriple

Writer = Callable[[Path, Sequence[NamedTriple]], Path]

TRAIN = [("a", "r", "b"), ("b", "s", "c"), ("c", "r", "a"), ("a", "s", "d")]
VALID = [("b", "r", "d")]
TEST = [("d", "s", "c"), ("new", "r", "a")]
MESSAGES = [("x", "r", "y"), ("y", "s", "z")]
OTHER_VALID = [("x", "s", "z")]
OTHER_TEST = [("z", "r", "x"), ("newer", "s", "y")]


def named(split: Split, facts: Tensor) -> list[NamedTriple]:
    entities, relations = split.graph.entities.names, split.graph.relations.names
    return [(entities[h], relations[r], entities[t]) for h, r, t in facts.tolist()]


@pytest.fixture
def transductive(tmp_path: Path, write_triples: Writer) -> Path:
    for name, triples in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        write_triples(tmp_path / "graph" / f"{name}.txt", triples)
    return tmp_path / "graph"


@pytest.fixture
def inductive(transductive: Path, write_triples: Writer) -> Path:
    beside = transductive.with_name("graph_ind")
    for name, triples in (("train", MESSAGES), ("valid", OTHER_VALID), ("test", OTHER_TEST)):
        write_triples(beside / f"{name}.txt", triples)
    return transductive


@pytest.fixture
def fully_inductive(tmp_path: Path, write_triples: Writer) -> Path:
    parts = {"train": TRAIN, "msg": MESSAGES, "valid": OTHER_VALID, "test": OTHER_TEST}
    for name, triples in parts.items():
        write_triples(tmp_path / "unseen" / f"{name}.txt", triples)
    return tmp_path / "unseen"


def many_triples(count: int = 60) -> list[NamedTriple]:
    """Every name occurs often, except those of the last fact."""
    draw = torch.Generator().manual_seed(0)
    ids = torch.stack([torch.randint(n, (4 * count,), generator=draw) for n in (10, 4, 10)], 1)
    triples = [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in ids.tolist()]
    return [*list(dict.fromkeys(triples))[: count - 1], ("once", "seldom", "never again")]
