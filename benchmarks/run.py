"""Speed and memory of training and evaluation, by backend and threads, against the machine's limit.

    KNOWFORMER_DATA=... python benchmarks/run.py            # all cases, about fifteen minutes
    KNOWFORMER_DATA=... python benchmarks/run.py wn18rr_v1  # one graph

Every measurement is a process of its own (measure.py), all in one run on one machine. Writes
results/speed_<hardware>_<date>.json and prints a table; the last line printed is JSON.
"""

import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from knowformer.atomic_files import write_text
from knowformer.environment import describe_environment
from knowformer.kernels._cpu_compile import compiled_kernel
from knowformer.kernels._cpu_kernels import BLOCK

HERE = Path(__file__).parent

# Graph, width, batch size: the released code's settings L=3, L~=2, L^=3, H=4.
CASES = [
    ("umls", 32, 64),
    ("wn18rr_v1", 32, 16),
    ("fb15k-237_v1", 32, 16),
    ("fb15k-237_v1", 64, 16),
    ("fb15k-237", 32, 4),
    ("wn18rr", 32, 4),
]
VARIANTS = [("cpu", 1), ("cpu", 2), ("reference", 1)]
LAYERS, QUERY_KEY_HOPS, VALUE_HOPS, HEADS = 3, 2, 3, 4


def peak_gflops(width: int) -> float:
    """Measured rate of the matrix product inside a kernel whose data stays in the first cache."""
    rows = BLOCK
    states = torch.randn(rows, width)
    weights, mats = torch.randn(2, width) * 0.1, torch.randn(width, width) * 0.1
    out, scratch = torch.empty(rows), torch.empty(2 * BLOCK, width)
    kernel = compiled_kernel("score_forward", width)
    arguments = [t.data_ptr() for t in (states, weights, mats, out, scratch)]
    best = float("inf")
    for _ in range(2000):
        before = time.perf_counter()
        kernel(*arguments, rows, 0.0)
        best = min(best, time.perf_counter() - before)
    return 2e-9 * rows * width * width / best


def gather_gbytes_per_second(width: int) -> float:
    """Measured rate of reading rows at random from a second-level cache, as a hop does."""
    rows = torch.randn(2**18 // (4 * width), width)
    order = torch.randint(len(rows), (200_000,))
    offsets = torch.arange(0, len(order) + 1, 50)
    best = float("inf")
    for _ in range(10):
        before = time.perf_counter()
        torch.nn.functional.embedding_bag(
            order, rows, offsets, mode="sum", include_last_offset=True
        )
        best = min(best, time.perf_counter() - before)
    return 4e-9 * len(order) * width / best


def limit_ms(case: dict[str, Any], gflops: float, gbytes: float, *, training: bool) -> float:
    """Least time of a query: its multiplications at the peak rate, its gathered rows at theirs.

    Counted without recomputation and with heads apart; biases, norms and losses are free.
    """
    prefix = "" if training else "test_"
    entities, edges, d = case[f"{prefix}entities"], case[f"{prefix}edges"], case["width"]
    passes = 3 if training else 1  # a product's two gradients cost as much as two products
    hops = LAYERS * (QUERY_KEY_HOPS + VALUE_HOPS)
    square = entities * d * d
    products = 2 * hops * square  # updates
    products += (4 * LAYERS - 2) * square  # stream inputs; the first layer's states are zero
    products += LAYERS * (4 + 2 / HEADS) * square + square  # attention, feed-forward, score
    sums = hops * edges * d
    gathered = 8 * hops * edges * d  # a state row and a relation row per edge
    return 1e3 * passes * (2e-9 * (products + sums) / gflops + 1e-9 * gathered / gbytes)


def measure(graph: str, width: int, batch_size: int, backend: str, threads: int) -> dict[str, Any]:
    command = [
        sys.executable, str(HERE / "measure.py"), "--graph", graph, "--width", str(width),
        "--batch-size", str(batch_size), "--backend", backend, "--threads", str(threads),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def show(case: dict[str, Any]) -> None:
    train, evaluate = case["train_ms"]["median"], case["evaluate_ms"]["median"]
    print(
        f"{case['graph']:14} D={case['width']:<3} {case['backend']:9} {case['threads']} thread(s)  "
        f"train {1e3 / train:8.1f} q/s ({case['train_limit_share']:.2f} of limit)  "
        f"evaluate {1e3 / evaluate:8.1f} q/s ({case['evaluate_limit_share']:.2f} of limit)  "
        f"{case['peak_memory_gb']:.2f} GB",
        flush=True,
    )


def main() -> None:
    """Runs the cases and stores what was seen."""
    wanted = set(sys.argv[1:])
    rates = {d: (peak_gflops(d), gather_gbytes_per_second(d)) for d in (32, 64)}
    cases: list[dict[str, Any]] = []
    for graph, width, batch_size in CASES:
        if wanted and graph not in wanted:
            continue
        for backend, threads in VARIANTS:
            case = measure(graph, width, batch_size, backend, threads)
            gflops, gbytes = rates[width]
            for kind in ("train", "evaluate"):
                limit = limit_ms(case, gflops, gbytes, training=kind == "train") / threads
                case[f"{kind}_limit_ms"] = limit
                case[f"{kind}_limit_share"] = limit / case[f"{kind}_ms"]["median"]
            cases.append(case)
            show(case)
    environment = describe_environment()
    hardware = re.sub(r"\W+", "-", environment["hardware"]["processor"].lower()).strip("-")
    target = HERE / "results" / f"speed_{hardware}_{datetime.now(UTC):%Y-%m-%d}.json"
    record = {
        "command": ["python", *sys.argv],
        "environment": environment,
        "peak_gflops": {d: rate[0] for d, rate in rates.items()},
        "gather_gbytes_per_second": {d: rate[1] for d, rate in rates.items()},
        "cases": cases,
    }
    write_text(target, json.dumps(record, indent=1) + "\n")
    print(json.dumps({"results": str(target), "cases": len(cases)}))


if __name__ == "__main__":
    main()
