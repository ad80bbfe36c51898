"""Speed and memory of training and evaluation, by backend and threads, against the machine's limit.

    KNOWFORMER_DATA=... python benchmarks/run.py            # all cases, about fifteen minutes
    KNOWFORMER_DATA=... python benchmarks/run.py wn18rr_v1  # one graph
    KNOWFORMER_DATA=... python benchmarks/run.py --against ../old  # and another version

Every measurement is a process of its own (measure.py), all in one run on one machine. Writes
results/speed_<hardware>_<date>.json and prints a table; the last line printed is JSON.
"""

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import startup
import torch
from numba import cfunc, types

from knowformer.kernels._cpu_stages import BLOCK, matmul
from knowformer.kernels._vectors import add, load, pick, rows_of, store
from knowformer.storage.atomic_files import write_text
from knowformer.system.environment import describe_environment

HERE = Path(__file__).parent

# Graph, width, batch size: the released code's settings L=3, L~=2, L^=3, H=4.
CASES = [
    ("umls", 32, 64),
    ("wn18rr_v1", 32, 64),
    ("fb15k-237_v1", 32, 64),
    ("fb15k-237_v1", 64, 64),
    ("fb15k-237", 32, 8),
    ("wn18rr", 32, 8),
]
VARIANTS = [("cpu", 1), ("cpu", 2), ("reference", 1)]
LAYERS, QUERY_KEY_HOPS, VALUE_HOPS, HEADS = 3, 2, 3, 4


def _multiply(source, weight, bias, target, repeats):
    for _ in range(repeats):
        matmul(source, 0, weight, bias, target, 0, BLOCK)


def _gather(rows, order, target, count):
    total = load(rows, pick(order, 0))
    for position in range(1, count):
        total = add(total, load(rows, pick(order, position)))
    store(target, 0, total)


def seconds_of(function, signature: str, width: int, *arguments: int) -> float:
    """Compiles a kernel for this width and returns its best time of twenty."""
    kinds = {"r": rows_of(width), "i": types.CPointer(types.int32), "n": types.int64}
    compiled = cfunc(types.void(*(kinds[letter] for letter in signature)))(function)
    plain = {"n": ctypes.c_int64}
    prototype = ctypes.CFUNCTYPE(
        None, *(plain.get(letter, ctypes.c_void_p) for letter in signature)
    )
    kernel, best = prototype(compiled.address), float("inf")
    for _ in range(20):
        before = time.perf_counter()
        kernel(*arguments)
        best = min(best, time.perf_counter() - before)
    return best


def peak_gflops(width: int) -> float:
    """Measured rate of the kernels' matrix product, its data in the first cache."""
    source, target = torch.randn(BLOCK, width), torch.empty(BLOCK, width)
    weight, bias = torch.randn(width, width), torch.randn(width)
    pointers = [tensor.data_ptr() for tensor in (source, weight, bias, target)]
    repeats = 1000
    best = seconds_of(_multiply, "rrrrn", width, *pointers, repeats)
    return 2e-9 * repeats * BLOCK * width * width / best


def gather_gbytes_per_second(width: int) -> float:
    """Measured rate of reading rows at random from 256 KB, as a hop does."""
    rows, target = torch.randn(2**18 // (4 * width), width), torch.empty(width)
    order = torch.randint(len(rows), (200_000,), dtype=torch.int32)
    pointers = [tensor.data_ptr() for tensor in (rows, order, target)]
    return 4e-9 * len(order) * width / seconds_of(_gather, "rirn", width, *pointers, len(order))


def limit_ms(case: dict[str, Any], gflops: float, gbytes: float, *, training: bool) -> float:
    """Least time of a query: its multiplications at the peak rate, its gathered rows at theirs.

    Counted without recomputation and with heads apart; biases, norms and losses are free. What
    queries of one relation share, the first layer's streams, is left out where they come together,
    in evaluation.
    """
    prefix = "" if training else "test_"
    entities, edges, d = case[f"{prefix}entities"], case[f"{prefix}edges"], case["width"]
    passes = 3 if training else 1  # a product's two gradients cost as much as two products
    layers = LAYERS if training else LAYERS - 1  # with streams of their own
    hops = layers * (QUERY_KEY_HOPS + VALUE_HOPS)
    square = entities * d * d
    products = 2 * hops * square  # updates
    products += (4 * layers - (2 if training else 0)) * square  # inputs; the first states are zero
    products += LAYERS * (4 + 2 / HEADS) * square + square  # attention, feed-forward, score
    sums = hops * edges * d
    gathered = 8 * hops * edges * d  # a state row and a relation row per edge
    return 1e3 * passes * (2e-9 * (products + sums) / gflops + 1e-9 * gathered / gbytes)


def measure(
    checkout: Path, graph: str, width: int, batch_size: int, backend: str, threads: int
) -> dict[str, Any]:
    """Measures one case in a process of its own, with a checkout's script and package."""
    command = [
        sys.executable, str(checkout / "benchmarks" / "measure.py"), "--graph", graph,
        "--width", str(width), "--batch-size", str(batch_size), "--backend", backend,
        "--threads", str(threads),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def compare(case: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Returns another checkout's times, and how many times faster this one is."""
    kinds = [kind for kind in ("train_ms", "evaluate_ms", "question_ms") if kind in other]
    times = {kind: other[kind] for kind in kinds}
    faster = {kind: other[kind]["median"] / case[kind]["median"] for kind in kinds}
    print("  times faster: " + ", ".join(f"{k} {v:.2f}" for k, v in faster.items()), flush=True)
    return {**times, "times_faster": faster}


def show(case: dict[str, Any]) -> None:
    train, evaluate = case["train_ms"]["median"], case["evaluate_ms"]["median"]
    print(
        f"{case['graph']:14} D={case['width']:<3} {case['backend']:9} {case['threads']} thread(s)  "
        f"train {1e3 / train:8.1f} q/s ({case['train_limit_share']:.2f} of limit)  "
        f"evaluate {1e3 / evaluate:8.1f} q/s ({case['evaluate_limit_share']:.2f} of limit)  "
        f"question {case['question_ms']['median']:7.1f} ms  "
        f"{case['peak_memory_gb']:.2f} GB (predicted {case['predicted_memory_gb']:.2f})",
        flush=True,
    )


def main() -> None:
    """Runs the cases and stores what was seen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("graphs", nargs="*", help="only these; default: all")
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    arguments = parser.parse_args()
    wanted = set(arguments.graphs)
    rates = {d: (peak_gflops(d), gather_gbytes_per_second(d)) for d in (32, 64)}
    started = startup.measure()
    print(json.dumps(started), flush=True)
    cases: list[dict[str, Any]] = []
    for graph, width, batch_size in CASES:
        if wanted and graph not in wanted:
            continue
        for backend, threads in VARIANTS:
            settings = (graph, width, batch_size, backend, threads)
            case = measure(HERE.parent, *settings)
            gflops, gbytes = rates[width]
            for kind in ("train", "evaluate"):
                limit = limit_ms(case, gflops, gbytes, training=kind == "train") / threads
                case[f"{kind}_limit_ms"] = limit
                case[f"{kind}_limit_share"] = limit / case[f"{kind}_ms"]["median"]
            cases.append(case)
            show(case)
            if arguments.against and backend == "cpu":
                case["against"] = compare(case, measure(arguments.against, *settings))
    environment = describe_environment()
    hardware = re.sub(r"\W+", "-", environment["hardware"]["processor"].lower()).strip("-")
    target = HERE / "results" / f"speed_{hardware}_{datetime.now(UTC):%Y-%m-%d}.json"
    record = {
        "command": ["python", *sys.argv],
        "environment": environment,
        "peak_gflops": {d: rate[0] for d, rate in rates.items()},
        "gather_gbytes_per_second": {d: rate[1] for d, rate in rates.items()},
        "startup": started,
        "cases": cases,
    }
    write_text(target, json.dumps(record, indent=1) + "\n")
    print(json.dumps({"results": str(target), "cases": len(cases)}))


if __name__ == "__main__":
    main()
