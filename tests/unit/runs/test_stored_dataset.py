import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from knowformer.data.dataset import Dataset
from knowformer.errors import BundleError
from knowformer.runs.stored_dataset import (
    FACTS_FILE,
    NAMES_FILE,
    load_run_dataset,
    save_run_dataset,
)
from knowformer.storage.tensor_files import read_tensors, write_tensors


@pytest.fixture
def folder(tmp_path: Path, ring: Dataset) -> Path:
    save_run_dataset(tmp_path, ring)
    return tmp_path


def with_value(row: int, column: int, value: int) -> Callable[[Tensor], Tensor]:
    def change(facts: Tensor) -> Tensor:
        facts = facts.clone()
        facts[row, column] = value
        return facts

    return change


@pytest.mark.parametrize("name", ["graph.0", "train.facts", "test.known"])
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (with_value(0, 0, 16), "head ids from 0 to 15"),
        (with_value(-1, 2, -1), "tail ids from 0 to 15"),
        (with_value(1, 1, 2), "relation ids from 0 to 1"),
        (with_value(0, 0, 2**31 - 1), "got 2,147,483,647"),
        (lambda facts: facts.float(), "three int32"),
        (lambda facts: facts.to(torch.uint64), "three int32"),
        (lambda facts: facts[:, :2].contiguous(), "three int32"),
        (lambda facts: facts.flatten(), "three int32"),
        (None, "found no"),
    ],
)
def test_facts_that_stand_for_no_names_are_refused(
    name: str, change: Callable[[Tensor], Tensor] | None, fault: str, folder: Path
) -> None:
    facts, _ = read_tensors(folder / FACTS_FILE)
    changed = {**facts, name: change(facts[name])} if change else facts
    if change is None:
        del changed[name]
    write_tensors(folder / FACTS_FILE, {key: each.clone() for key, each in changed.items()})
    with pytest.raises(BundleError, match=fault):
        load_run_dataset(folder)


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("relations", ["next", "next"], "every relation once"),
        ("relations", [], "relation ids"),
        ("graphs", [["place00"] * 16], "every entity once"),
        ("graphs", [["place00"]], "ids from 0 to 0"),
        ("graphs", [], "at least 1 item"),
        ("graph_of_split", {"train": 0, "valid": 0}, "for the split test"),
        ("graph_of_split", {"train": 0, "valid": 0, "test": 1}, "for the split test"),
        ("graph_of_split", {"train": 0, "valid": 0, "test": -1}, "greater than or equal"),
        ("graph_of_split", {"train": 0, "valid": 0, "test": True}, "valid integer"),
        ("name", 7, "valid string"),
        ("format_version", 2, "Update knowformer"),
    ],
)
def test_names_that_cannot_be_are_refused(key: str, value: Any, fault: str, folder: Path) -> None:
    names = json.loads((folder / NAMES_FILE).read_text("utf-8"))
    (folder / NAMES_FILE).write_text(json.dumps({**names, key: value}), "utf-8")
    with pytest.raises(BundleError, match=fault):
        load_run_dataset(folder)
