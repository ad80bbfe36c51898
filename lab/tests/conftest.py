"""A folder of small experiments on a small graph, and a runner over it; fixtures of the library."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

# First: shapes are checked only in modules that are imported after it.
from tests.conftest import (
    one_thread,
    pytest_runtest_setup,
    random_graph,
    ring,
    ring_triples,
    write_triples,
)
from tests.integration.conftest import (
    command,
    command_environment,
    installed,
    read_json,
    refuse,
    start,
    succeed,
)

from bench import RING, TINY, Bench, WriteExperiment
from knowformer.storage.triples_io import NamedTriple

__all__ = [
    "command",
    "command_environment",
    "installed",
    "one_thread",
    "pytest_runtest_setup",
    "random_graph",
    "read_json",
    "refuse",
    "ring",
    "ring_triples",
    "start",
    "succeed",
    "write_triples",
]


@pytest.fixture
def experiments_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ring_triples: list[NamedTriple],
    write_triples: Callable[[Path, Sequence[NamedTriple]], Path],
) -> Path:
    write_triples(tmp_path / RING, ring_triples)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "experiments"


@pytest.fixture
def write_experiment(experiments_folder: Path) -> WriteExperiment:
    """A function: name and TOML text in, a file in the experiments' folder out."""

    def write(name: str, text: str) -> None:
        path = experiments_folder / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'about = "a test"\n{text}', "utf-8")

    return write


@pytest.fixture
def tiny_experiments(experiments_folder: Path, write_experiment: WriteExperiment) -> Path:
    """A ranking, a selection study and a validation trial that share one training."""
    write_experiment("inductive/one", f'kind = "ranking"\ndataset = "{RING}"\nseeds = [0, 1]{TINY}')
    write_experiment("selection/one", 'kind = "selection"\nlike = "inductive/one"\nseeds = [0]')
    write_experiment("search/one", 'kind = "validation"\nlike = "inductive/one"\nseeds = [0]')
    return experiments_folder


@pytest.fixture
def bench(tiny_experiments: Path) -> Bench:
    return Bench(tiny_experiments)
