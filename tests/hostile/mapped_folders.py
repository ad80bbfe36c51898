"""Runs and data sets in mapped arrays that somebody damaged, or made up."""

import json
import os
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from knowformer.data.mapped_dataset import (
    FOLDER,
    INDEX_FILE,
    INDICES,
    LISTS,
    NAMES,
    TAILS,
    write_mapped,
)
from knowformer.runs.stored_dataset import load_run_dataset
from tests.hostile.case import Case, Place
from tests.hostile.run_folders import ANSWER, EVALUATE

Array = np.ndarray[Any, Any]

VIEWS = (*ANSWER, "--view-size", "8")
MISSPELT = ("answer", "run", "--head", "f0_anne", "--relation", "parent_of", "--threads", "1")
EXPLAIN = ("explain", "run", "--head", "f0_ann", "--relation", "married_to", "--tail", "f0_bob",
           "--threads", "1")  # fmt: skip
COMMANDS = (ANSWER, VIEWS, MISSPELT, EVALUATE, EXPLAIN)

ARRAYS = (
    "facts",
    *(f"entities.{name}" for name in NAMES),
    *(f"{graph}.{name}" for graph in ("train", "all") for name in (*INDICES, *LISTS)),
    *(f"{graph}.tails.{name}" for graph in ("train", "all") for name in TAILS),
)


def _set(place: float, value: int) -> Callable[[Array], Array]:
    def change(array: Array) -> Array:
        flat = array.reshape(-1).copy()
        flat[int(place * (len(flat) - 1))] = np.array(value).astype(array.dtype)
        return flat.reshape(array.shape)

    return change


CHANGES: dict[str, Callable[[Array], Array]] = {
    "one negative": _set(0.5, -1),
    "one too large": _set(0.5, 2**30),
    "the last too large": _set(1.0, 2**30),
    "the first not the first": _set(0.0, 3),
    "all the same": lambda array: np.full_like(array, 1),
    "all at their limit": lambda array: np.full_like(array, np.iinfo(array.dtype).max),
    "backwards": lambda array: array[::-1].copy(),
    "one fewer": lambda array: array[:-1].copy(),
    "none": lambda array: array[:0].copy(),
    "floats": lambda array: array.astype(np.float64),
    "other integers": lambda array: array.astype(np.int16),
    "Fortran order": lambda array: np.asfortranarray(array.reshape(-1, 1) * [1, 2]),
    "scalar": lambda array: array.reshape(-1)[0],
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
}
HEADER = b"\x93NUMPY\x01\x00\x76\x00"


def _header(text: str) -> bytes:
    return HEADER + text.encode().ljust(0x75) + b"\n" + bytes(4000)


BYTES: dict[str, bytes] = {
    "empty": b"",
    "noise": bytes(range(256)) * 20,
    "a zip": b"PK\x03\x04" + bytes(500),
    "a pickle": b"\x80\x04K\x01.",
    "a shape beyond counting": _header(
        f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({'9' * 40},)}}"
    ),
    "a negative shape": _header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}"),
    "objects": _header("{'descr': '|O', 'fortran_order': False, 'shape': (9,)}"),
    "a header of code": _header("__import__('os').abort()"),
    "no header": b"\x93NUMPY",
    "another version": b"\x93NUMPY\x09\x00" + bytes(200),
}
INDEX: dict[str, Callable[[dict[str, Any]], object]] = {
    "no version": lambda index: index.pop("format_version"),
    "a newer version": lambda index: index.update(format_version=99),
    "a split less": lambda index: index["num_facts"].pop("valid"),
    "a negative number": lambda index: index["num_facts"].update(valid=-1),
    "facts moved": lambda index: index["num_facts"].update(
        train=index["num_facts"]["train"] + 5, valid=index["num_facts"]["valid"] - 5
    ),
    "numbers that cancel": lambda index: index["num_facts"].update(
        train=index["num_facts"]["train"] + index["num_facts"]["valid"] + 9, valid=-9
    ),
    "beyond counting": lambda index: index["num_facts"].update(train=10**30),
    "a relation again": lambda index: index["relations"].append(index["relations"][0]),
    "a relation less": lambda index: index["relations"].pop(),
    "a relation renamed": lambda index: index["relations"].__setitem__(0, "\x1b[31m$x_"),
    "no relations": lambda index: index.update(relations=[]),
    "another fingerprint": lambda index: index.update(fingerprint="$\\frac{"),
    "a name of control characters": lambda index: index.update(name="\x1b[31m\n$\\frac{"),
    "a long name": lambda index: index.update(name="x" * 100_000),
    "more": lambda index: index.update(more=1),
}
KINDS: dict[str, Callable[[Path], object]] = {
    "missing": lambda _: None,
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link outside": lambda path: path.symlink_to("../../../outside/precious"),
}


def copy_mapped(place: Place) -> Path:
    """Copies the run with its data set in mapped arrays; returns the folder of these."""
    run = place.copy_run()
    write_mapped(run, load_run_dataset(run))
    return run / FOLDER


def _case(file: str, what: str, damage: Callable[[Path], object], command: tuple[str, ...]) -> Case:
    def prepare(place: Place) -> list[Any]:
        damage(copy_mapped(place) / file)
        return list(command)

    return Case(f"mapped/{file}: {what}; {' '.join(command)}", prepare)


def _array_cases() -> Iterator[Case]:
    commands = cycle(COMMANDS)
    for name in ARRAYS:
        for what, change in CHANGES.items():

            def damage(path: Path, change: Callable[[Array], Array] = change) -> None:
                np.save(path, change(np.load(path)))

            yield _case(f"{name}.npy", what, damage, next(commands))
        for what, content in BYTES.items():

            def write(path: Path, content: bytes = content) -> None:
                path.write_bytes(content)

            yield _case(f"{name}.npy", what, write, next(commands))


def _kind_cases() -> Iterator[Case]:
    for file in (INDEX_FILE, "facts.npy", "entities.text.npy"):
        for what, make in KINDS.items():

            def damage(path: Path, make: Callable[[Path], object] = make) -> None:
                path.unlink()
                make(path)

            yield _case(file, what, damage, ANSWER)


def _index_cases() -> Iterator[Case]:
    for what, change in INDEX.items():

        def damage(path: Path, change: Callable[[dict[str, Any]], object] = change) -> None:
            index = json.loads(path.read_text("utf-8"))
            change(index)
            path.write_text(json.dumps(index), "utf-8")

        for command in COMMANDS:
            yield _case(INDEX_FILE, what, damage, command)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _array_cases()
    yield from _kind_cases()
    yield from _index_cases()
