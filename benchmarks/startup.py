"""Seconds from starting Python to the first training step: with kernels to compile, and without.

    python benchmarks/startup.py

Prints one line of JSON; run.py stores it with the rest.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

STEP = """
import tempfile, time
from pathlib import Path
from knowformer.data.loading import load_dataset
from knowformer.seeding import generator
from knowformer.training.config import RunConfig
from knowformer.training.loop import Trainer
imported = time.perf_counter()
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(load_dataset("umls-pykeen").for_training(), RunConfig(), Path(folder))
    trainer.step(trainer.see(*next(trainer.epochs.batches(generator(0, "order", 0)))))
print(time.perf_counter() - imported)
"""


def seconds(cache: str) -> dict[str, float]:
    """Runs one step in a process of its own."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", STEP],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    )
    whole = time.perf_counter() - started
    return {"whole": whole, "after_imports": float(done.stdout.split()[-1])}


def measure() -> dict[str, dict[str, float]]:
    """Returns the first start, which compiles, and the quickest of three later ones."""
    with tempfile.TemporaryDirectory() as cache:
        first = seconds(cache)
        later = min((seconds(cache) for _ in range(3)), key=lambda found: found["whole"])
    return {"first_start_seconds": first, "later_start_seconds": later}


if __name__ == "__main__":
    print(json.dumps(measure()))
