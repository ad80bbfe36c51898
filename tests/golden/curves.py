"""Loss curves that a change must keep unless it is meant to change numbers.

    python -m tests.golden.curves make  [--only NAME]   trains the curves and stores them
    python -m tests.golden.curves check [--only NAME]   trains them and compares; 1 if any differs

NAME is a curve, or a part of the names of several. Curves on benchmark data need $KNOWFORMER_DATA.
Make a curve anew only when its numbers were meant to change, and say in the changelog, under
Numerics, what changed them and by how much.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import llvmlite.binding
import pytest
import torch
from rich.console import Console

from knowformer.choices import PresetName
from knowformer.data.dataset import Dataset
from knowformer.data.holdout import hold_out
from knowformer.data.loading import load_dataset
from knowformer.scoring.scorer import Scorer
from knowformer.system.environment import describe_environment
from knowformer.training import loop
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import build_config

FOLDER = Path(__file__).with_name("curves")
COMPARABLE_STEPS = 20  # before roundings of another CPU have grown
TOLERANCE = 1e-4
NUM_SCORED = 8


@dataclass(frozen=True)
class Curve:
    """A seeded training run of so many steps; fewer where validation sets facts apart."""

    name: str
    dataset: str
    preset: PresetName | None
    settings: tuple[str, ...]
    steps: int


@dataclass(frozen=True)
class Numbers:
    """What a run came to; digests are of bits."""

    losses: list[float]
    validation_mrrs: list[float]
    weights: str
    scores: str


@dataclass(frozen=True)
class Comparison:
    """A curve against its record; ``differs`` is empty if all is as it should be."""

    curve: Curve
    same_environment: bool
    differs: str
    largest_difference: float
    first_step: int | None


SMALL = ("model.num_layers=2", "model.num_query_key_hops=1", "model.num_value_hops=2")
COMMON = (*SMALL, "training.learning_rate=0.002", "training.max_valid_facts=8")

# Seconds each, for every run of the tests.
NATIONS = Curve(
    "nations",
    "nations",
    preset=None,
    settings=(*COMMON, "model.hidden_dim=16", "model.dropout=0.0", "training.batch_size=46"),
    steps=20,
)
NATIONS_IN_REGIONS = Curve(
    "nations-in-regions",
    "nations",
    preset="paper",
    settings=(
        *NATIONS.settings,
        "training.targets=some",
        "training.region_size=7",
        "training.whole_graph_share=0.2",
        "training.relation_swaps=0.2",
        "training.edge_dropout=0.1",
        "training.averaging=0.9",
    ),
    steps=40,
)

DATASETS = {
    # A larger batch, so that epochs of few queries end within the run: regions are cut anew.
    "umls-pykeen": ("model.hidden_dim=16", "training.batch_size=8"),
    "wn18rr_v1": ("model.hidden_dim=32", "training.batch_size=4"),
    "fb15k-237_v1": ("model.hidden_dim=32", "training.batch_size=4"),
}
# About half the entities.
REGION_SIZES = {"umls-pykeen": 68, "wn18rr_v1": 1373, "fb15k-237_v1": 797}

# Over all variants, every option that decides what a step is occurs; the rest is the preset's.
OPTIONS = {
    "released-cross_entropy-whole": (),
    "released-cross_entropy-regions": ("training.targets=some", "training.averaging=0.9"),
    "released-binary-whole": ("training.hide=links", "training.edge_dropout=0.2"),
    "released-binary-regions": ("training.targets=all", "training.relation_swaps=0.3"),
    "paper-cross_entropy-whole": (
        "training.targets=all",
        "training.averaging=0.95",
        "training.schedule=constant",
    ),
    "paper-cross_entropy-regions": ("training.hide=links", "training.edge_dropout=0.1"),
    "paper-binary-whole": (
        "training.targets=some",
        "training.relation_swaps=0.2",
        "training.adversarial_temperature=0.5",
        "training.num_negatives=32",
    ),
    "paper-binary-regions": ("training.gradient_clip=0.1",),
}
# Ablations and similarities where the graph is small; facts set apart for validation elsewhere.
MORE_OPTIONS = {
    "umls-pykeen-released-binary-whole": ("model.similarity=exponential",),
    "umls-pykeen-released-binary-regions": ("model.query_stream=false",),
    "umls-pykeen-paper-cross_entropy-whole": ("model.similarity=random_features",),
    "umls-pykeen-paper-cross_entropy-regions": ("model.value_stream=false",),
    "umls-pykeen-paper-binary-whole": ("model.attention=false",),
    "wn18rr_v1-released-binary-whole": ("training.validation_region=0.2",),
    "fb15k-237_v1-paper-binary-whole": ("training.validation_relations=0.2",),
}


def _variant(dataset: str, preset: PresetName, loss: str, graph: str) -> Curve:
    variant = f"{preset}-{loss}-{graph}"
    name = f"{dataset}-{variant}"
    settings = [*COMMON, *DATASETS[dataset], f"training.loss={loss}"]
    if graph == "regions":
        settings += [f"training.region_size={REGION_SIZES[dataset]}"]
        settings += ["training.whole_graph_share=0.2"]  # some 20 of 200 steps
    settings += [*OPTIONS[variant], *MORE_OPTIONS.get(name, ())]
    return Curve(name, dataset, preset, tuple(settings), steps=200)


_PRESETS: tuple[PresetName, ...] = ("released", "paper")
_VARIANTS = product(DATASETS, _PRESETS, ("cross_entropy", "binary"), ("whole", "regions"))
CURVES = {
    curve.name: curve
    for curve in [NATIONS, NATIONS_IN_REGIONS, *(_variant(*variant) for variant in _VARIANTS)]
}


def run(curve: Curve) -> Numbers:
    """Trains; the one place that knows how the library does it."""
    dataset = load_dataset(curve.dataset)
    config = _config(curve, dataset)
    events: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "LOG_EVERY_SECONDS", 0.0)  # an event a step
        training = config.training
        splits = hold_out(
            dataset.for_training(),
            entities=training.validation_region,
            relations=training.validation_relations,
            seed=config.seed,
        )
        trainer = loop.Trainer(splits, config, Path(folder), on_event=events.append)
        model = trainer.run()
    asked = dataset.test.facts[:NUM_SCORED]
    scorer = Scorer(model, dataset.test.graph, seed=config.seed, threads=config.threads)
    return Numbers(
        losses=[event["loss"] for event in events if event["kind"] == "training"],
        validation_mrrs=[event["valid_mrr"] for event in events if event["kind"] == "validation"],
        weights=_digest(model.state_dict().values()),
        scores=_digest([scorer.score(asked[:, 0], asked[:, 1]).dense()]),
    )


def _config(curve: Curve, dataset: Dataset) -> RunConfig:
    """Fits the length of the run to its steps, with a validation half-way and one at the end."""
    settings = list(curve.settings)
    training = build_config(preset=curve.preset, assignments=settings).training
    facts = dataset.train.facts.tolist()
    num_queries = 2 * len(facts)
    if training.targets != "one":
        heads = {(head, relation) for head, relation, _ in facts}
        num_queries = len(heads) + len({(tail, relation) for _, relation, tail in facts})
    # Half a step less: it is rounded up.
    epochs = (curve.steps - 0.5) / math.ceil(num_queries / (training.batch_size or 1))
    settings += [f"training.max_epochs={epochs!r}"]
    settings += [f"training.validations_per_epoch={max(1, round(2.0 / epochs))}"]
    return build_config(preset=curve.preset, assignments=settings)


def _digest(tensors: Iterable[torch.Tensor]) -> str:
    """Names and order do not count: parameters may move from one module to another."""
    parts = sorted(blake2b(tensor.numpy().tobytes()).digest() for tensor in tensors)
    return blake2b(b"".join(parts), digest_size=16).hexdigest()


def environment() -> dict[str, str]:
    """Returns what decides how sums are rounded."""
    hardware = describe_environment()["hardware"]
    features = llvmlite.binding.get_host_cpu_features().flatten().encode()
    return {
        "processor": hardware["processor"],
        "instructions": hardware["instructions"],
        "compiled_for": llvmlite.binding.get_host_cpu_name(),
        "features": blake2b(features, digest_size=8).hexdigest(),
        **{name: version(name) for name in ("numba", "llvmlite", "torch", "numpy")},
    }


def path_of(curve: Curve) -> Path:
    """Returns the file of a curve's record."""
    return FOLDER / f"{curve.name}.json"


def make(curve: Curve) -> None:
    """Trains a curve and stores its record: a line for each thing that it says."""
    record = {**_identity(curve), "environment": environment(), **asdict(run(curve))}
    lines = [f'  "{key}": {json.dumps(value)}' for key, value in record.items()]
    path_of(curve).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def compare(curve: Curve, numbers: Numbers) -> Comparison:
    """Compares a run with the record: bit by bit, or nearly where another CPU rounds otherwise."""
    stored = json.loads(path_of(curve).read_text())
    same = stored["environment"] == environment()
    pairs = list(zip(numbers.losses, stored["losses"], strict=False))
    gaps = [abs(new - old) / max(abs(old), 1e-12) for new, old in pairs]
    differs = [key for key, value in _identity(curve).items() if stored[key] != value]
    if len(numbers.losses) != len(stored["losses"]):
        differs.append("number of steps")
    if same:
        differs += [key for key, value in asdict(numbers).items() if stored[key] != value]
    elif max(gaps[:COMPARABLE_STEPS]) > TOLERANCE:
        differs.append("losses")
    return Comparison(
        curve,
        same_environment=same,
        differs=", ".join(differs),
        largest_difference=max(gaps),
        first_step=next((step for step, gap in enumerate(gaps, 1) if gap), None),
    )


def _identity(curve: Curve) -> dict[str, Any]:
    return {"dataset": curve.dataset, "preset": curve.preset, "settings": list(curve.settings)}


def _check(curves: list[Curve], console: Console) -> int:
    _print_row(console, "curve", "seconds", "largest difference", "first at step", "result")
    failed = 0
    for curve in curves:
        started = time.perf_counter()
        found = compare(curve, run(curve))
        failed += bool(found.differs)
        fine = "equal bits" if found.same_environment else "near, in another environment"
        _print_row(
            console,
            curve.name,
            f"{time.perf_counter() - started:.1f}",
            f"{found.largest_difference:.1e}",
            str(found.first_step or "-"),
            f"differs: {found.differs}" if found.differs else fine,
        )
    return 1 if failed else 0


def _print_row(console: Console, name: str, *cells: str) -> None:
    """Row by row: a table that waits for its last row would be silent for minutes."""
    row = f"{name:<44}{cells[0]:>8}{cells[1]:>20}{cells[2]:>15}  {cells[3]}"
    console.print(row, soft_wrap=True, highlight=False)


def main(arguments: list[str] | None = None) -> int:
    """Makes or checks curves and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.curves")
    parser.add_argument("command", choices=("make", "check"))
    parser.add_argument("--only", metavar="NAME", default="", help="a curve, or a part of names")
    chosen = parser.parse_args(arguments)
    curves = [CURVES[chosen.only]] if chosen.only in CURVES else []
    curves = curves or [curve for name, curve in CURVES.items() if chosen.only in name]
    if not curves:
        parser.error(f"expected a part of a curve's name, got {chosen.only!r}: {', '.join(CURVES)}")
    console = Console()
    if chosen.command == "check":
        return _check(curves, console)
    for curve in curves:
        started = time.perf_counter()
        make(curve)
        console.print(f"{curve.name}: {time.perf_counter() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
