"""Makes tests/golden/nations_20_steps.json anew: python -m tests.golden.make

The record is the loss of each of 20 seeded training steps on the embedded graph Nations, with one
thread. ``test_golden.py`` compares every change with it. Make it anew only when the numbers were
meant to change, and say in the changelog, under Numerics, what changed them and by how much.
"""

import json
import math
import tempfile
from pathlib import Path

import torch

from knowformer.data.dataset import TrainingSplits, load_dataset
from knowformer.training import loop
from knowformer.training.config import RunConfig
from knowformer.training.events import read_events
from knowformer.training.sampling.batches import TrainingBatches
from knowformer.training.settings_file import build_config

RECORD = Path(__file__).with_name("nations_20_steps.json")
NUM_STEPS = 20

SETTINGS = [
    "model.hidden_dim=16",
    "model.num_layers=2",
    "model.num_query_key_hops=1",
    "model.num_value_hops=2",
    "model.dropout=0.0",  # torch draws these otherwise where it is built without MKL
    "training.targets=some",
    "training.max_epochs=1",
    "training.max_valid_facts=5",
    "training.learning_rate=0.002",
]


def golden_config(splits: TrainingSplits) -> RunConfig:
    """One epoch of just as many steps as the record has."""
    queries = TrainingBatches(
        splits.train.facts,
        num_relations=len(splits.train.graph.relations),
        batch_size=1,
        targets="some",
    )
    batch_size = math.ceil(queries.num_queries / NUM_STEPS)
    return build_config(assignments=[*SETTINGS, f"training.batch_size={batch_size}"])


def golden_losses(folder: Path) -> list[float]:
    """Returns the loss of each step, having run them in a folder."""
    torch.set_num_threads(1)
    splits = load_dataset("nations").for_training()
    loop.Trainer(splits, golden_config(splits), folder).run()
    events = read_events(folder / "events.jsonl")
    return [event["loss"] for event in events if event["kind"] == "training"]


def main() -> None:
    """Writes the record."""
    loop.LOG_EVERY_SECONDS = 0.0  # an event a step
    with tempfile.TemporaryDirectory() as folder:
        losses = golden_losses(Path(folder))
    RECORD.write_text(json.dumps({"losses": losses}, indent=2) + "\n")


if __name__ == "__main__":
    main()
