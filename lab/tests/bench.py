"""What several tests of the lab share: tiny settings, and a way to run experiments."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from knowformer_lab.experiment import Experiment, load_experiments
from knowformer_lab.results import ResultStore
from knowformer_lab.runner import Outcome, Runner, Watcher

SHIPPED = Path(__file__).resolve().parents[1] / "experiments"

TINY = """
[settings.model]
hidden_dim = 16
num_heads = 4
num_layers = 1
num_query_key_hops = 1
num_value_hops = 2

[settings.training]
max_epochs = 2
"""

RING = "ring.tsv"  # a path from the folder that tests run in

WriteExperiment = Callable[[str, str], None]


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
