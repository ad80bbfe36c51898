"""One measurement in a process of its own: a graph, a backend, a number of threads.

    python benchmarks/measure.py --graph wn18rr_v1 --backend cpu --threads 1

Prints one line of JSON: milliseconds per query of a training step (forward, loss, backward, Adam),
of evaluation and of a single question, as median and quartiles over repeats, each kernel's part,
and peak memory.
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from knowformer.data.dataset import Dataset
from knowformer.data.loading import load_dataset
from knowformer.evaluation.evaluate import BATCH_SIZE
from knowformer.graph.inverse import num_with_inverses, with_inverse_facts
from knowformer.queries.batches import evaluation_batches
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import generator
from knowformer.system.allocator import keep_freed_memory
from knowformer.training.loop import Trainer
from knowformer.training.plan import predicted_memory
from knowformer.training.settings_file import build_config

WARM_UPS = 2


def quartiles(milliseconds: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(milliseconds, n=4)
    return {"median": middle, "first_quartile": low, "third_quartile": high}


def repeat(
    work: Callable[[], int], repeats: int, max_seconds: float
) -> tuple[dict[str, Any], float, int]:
    """Times ``work``, which returns how many queries it did; at least two timed repeats."""
    before = time.perf_counter()
    for _ in range(WARM_UPS):
        work()
        if time.perf_counter() - before > max_seconds / 4:
            break
    TIMES.clear()
    samples: list[float] = []
    queries, started = 0, time.perf_counter()
    while len(samples) < repeats:
        before = time.perf_counter()
        done = work()
        samples.append(1e3 * (time.perf_counter() - before) / done)
        queries += done
        if len(samples) >= 2 and time.perf_counter() - started > max_seconds:
            break
    return {**quartiles(samples), "repeats": len(samples)}, time.perf_counter() - started, queries


TIMES: Counter[str] = Counter()


def time_kernels() -> None:
    """Puts a stopwatch around every compiled kernel; it costs a microsecond a call."""
    from knowformer.kernels import _cpu

    compiled_kernel = _cpu.compiled_kernel

    def stopwatch(name: str, *widths: int) -> Callable[..., None]:
        kernel = compiled_kernel(name, *widths)

        def call(**arguments: Any) -> None:
            before = time.perf_counter()
            kernel(**arguments)
            TIMES[name] += time.perf_counter() - before

        return call

    _cpu.compiled_kernel = stopwatch


def pieces(seconds: float, queries: int, threads: int) -> dict[str, float]:
    """Milliseconds per query inside each kernel, and in everything else, summed over threads."""
    inside = {name: 1e3 * value / queries for name, value in TIMES.items()}
    rest = 1e3 * seconds * threads / queries - sum(inside.values())
    return {**inside, "rest": rest}


def training_step(
    dataset: Dataset, arguments: argparse.Namespace, folder: Path
) -> Callable[[], int]:
    """Returns a function that does one step and says how many queries it had."""
    settings = [
        f"threads={arguments.threads}",
        f"backend={arguments.backend}",
        f"model.hidden_dim={arguments.width}",
        f"training.batch_size={arguments.batch_size}",
    ]
    trainer = Trainer(dataset.for_training(), build_config(assignments=settings), folder)
    batches = iter([])
    epoch = 0

    def step() -> int:
        nonlocal batches, epoch
        graph, batch = next(batches, (None, ()))
        while graph is None or len(batch) < arguments.batch_size:
            batches, epoch = trainer.epochs.batches(generator(0, "order", epoch)), epoch + 1
            graph, batch = next(batches)
        trainer.step(trainer.see(graph, batch))
        return len(batch)

    step.model = trainer.model  # type: ignore[attr-defined]
    step.predicted_memory = predicted_memory(  # type: ignore[attr-defined]
        trainer.config, dataset.train.graph, arguments.batch_size
    )
    return step


def evaluation(dataset: Dataset, model: Any, arguments: argparse.Namespace) -> Callable[[], int]:
    """Returns a function that scores one batch of test queries."""
    split = dataset.test
    scorer = Scorer(model, split.graph, seed=0, threads=arguments.threads)
    directed = with_inverse_facts(split.facts, len(split.graph.relations))
    batches = [
        batch for batch, _ in evaluation_batches(directed, len(split.graph.relations), BATCH_SIZE)
    ]
    turn = 0

    def score() -> int:
        nonlocal turn
        batch = batches[turn % len(batches)]
        turn += 1
        scorer.score(batch.heads, batch.relations)
        return len(batch)

    return score


def single_questions(
    dataset: Dataset, model: Any, arguments: argparse.Namespace
) -> Callable[[], int]:
    """Returns a function that asks one question on the training graph, another each time."""
    facts = dataset.valid.facts
    scorer = Scorer(model, dataset.train.graph, seed=0, threads=arguments.threads)
    turn = 0

    def ask() -> int:
        nonlocal turn
        fact = facts[turn % len(facts)]
        turn += 1
        scorer.score(fact[:1], fact[1:2])
        return 1

    return ask


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--graph", required=True)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--max-seconds", type=float, default=12.0)
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    if arguments.backend == "cpu":
        time_kernels()
    dataset = load_dataset(arguments.graph)
    graph = dataset.train.graph
    result: dict[str, Any] = {
        **vars(arguments),
        "entities": len(graph.entities),
        "relations": num_with_inverses(len(graph.relations)),
        "edges": graph.adjacency.num_edges,
        "test_entities": len(dataset.test.graph.entities),
        "test_edges": dataset.test.graph.adjacency.num_edges,
        "warm_ups": WARM_UPS,
    }
    with tempfile.TemporaryDirectory() as folder:
        step = training_step(dataset, arguments, Path(folder))
        result["train_ms"], seconds, queries = repeat(
            step, arguments.repeats, arguments.max_seconds
        )
        result["train_pieces_ms"] = pieces(seconds, queries, arguments.threads)
        result["peak_memory_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        result["predicted_memory_gb"] = step.predicted_memory / 1e9  # type: ignore[attr-defined]
        score = evaluation(dataset, step.model, arguments)  # type: ignore[attr-defined]
        result["evaluate_ms"], seconds, queries = repeat(
            score, arguments.repeats, arguments.max_seconds
        )
        result["evaluate_pieces_ms"] = pieces(seconds, queries, arguments.threads)
        ask = single_questions(dataset, step.model, arguments)  # type: ignore[attr-defined]
        result["question_ms"], _, _ = repeat(ask, 2 * arguments.repeats, arguments.max_seconds / 4)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
