"""A folder of small experiments on a small graph, and a runner over it."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from knowformer.reproduction.experiment import Experiment, load_experiments
from knowformer.reproduction.results import ResultStore
from knowformer.reproduction.runner import Outcome, Runner, Watcher
from knowformer.storage.triples_io import NamedTriple

TINY = """
[settings.model]
hidden_dim = 16
num_heads = 2
num_layers = 1
num_query_key_hops = 1
num_value_hops = 2

[settings.training]
max_epochs = 2
"""

RING = "ring.tsv"  # a path from the folder that tests run in

WriteExperiment = Callable[[str, str], None]


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


class Bench:
    """Experiments, their results, and a way to run them without a display."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.experiments: dict[str, Experiment] = load_experiments(folder)
        self.store = ResultStore(folder / "results")
        self.runner = Runner(self.store, folder.parent / "runs", self.experiments, threads=1)

    def run(self, *names: str, max_minutes: float | None = None) -> list[Outcome]:
        tasks = self.runner.missing([self.experiments[name] for name in names])
        return self.runner.run(
            tasks, watch=lambda *_: nullcontext(Watcher()), max_minutes=max_minutes
        )


@pytest.fixture
def bench(tiny_experiments: Path) -> Bench:
    return Bench(tiny_experiments)
