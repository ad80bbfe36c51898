"""What it costs to check a run folder while it is loaded.

    KNOWFORMER_DATA=DIR python benchmarks/run_checks.py wn18rr hetionet

Loads the same folder with its checks and without them, in turns, on one thread: ids within their
vocabulary, names by a schema, weights by layout and for numbers that are finite. Seconds are of the
processor, so that other work does not count. The last line printed is JSON.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from knowformer import KnowFormer, Reasoner
from knowformer.data.loading import load_dataset
from knowformer.runs import stored_dataset, stored_weights
from knowformer.runs.folder import save_weights, start_run
from knowformer.training.config import RunConfig

REPEATS = 15


def make_run(folder: Path, graph: str) -> None:
    """Writes a run folder with weights as training begins with them."""
    dataset, config = load_dataset(graph), RunConfig()
    start_run(folder, config, dataset)
    model = KnowFormer.initialized(config.model, dataset.relations)
    save_weights(folder, model, link=config.training.link)


def _believe(path: Path) -> Any:
    names: Any = stored_dataset._DatasetFile
    return names.model_construct(**json.loads(path.read_text("utf-8")))


@contextmanager
def unchecked() -> Generator[None]:
    """Takes whatever a run folder holds, as long as this lasts."""
    with ExitStack() as patches:
        for module, name, instead in (
            (stored_dataset, "_checked", lambda _path, _name, facts, *_: facts.long()),
            (stored_dataset, "_read_names", _believe),
            (stored_weights, "check_finite", lambda *_: None),
        ):
            patches.enter_context(patch.object(module, name, instead))
        yield


def seconds_of_loading(folder: Path) -> float:
    """Returns processor seconds."""
    before = time.process_time()
    Reasoner.from_pretrained(folder, threads=1)
    return time.process_time() - before


def measure(graph: str) -> dict[str, float]:
    """Returns the median seconds of either way, and how much longer the checked one takes."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "run"
        make_run(folder, graph)
        seconds_of_loading(folder)
        checked: list[float] = []
        believed: list[float] = []
        for _ in range(REPEATS):
            checked.append(seconds_of_loading(folder))
            with unchecked():
                believed.append(seconds_of_loading(folder))
    one, other = statistics.median(checked), statistics.median(believed)
    return {
        "checked_seconds": round(one, 4),
        "unchecked_seconds": round(other, 4),
        "added_share": round(one / other - 1.0, 4),
    }


def main() -> None:
    """Measures each graph that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", default=["umls-pykeen"])
    torch.set_num_threads(1)
    print(json.dumps({graph: measure(graph) for graph in parser.parse_args().graphs}))


if __name__ == "__main__":
    main()
