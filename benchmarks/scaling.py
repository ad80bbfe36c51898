"""How the cost of a query grows with entities and with edges, each by itself, on random graphs.

    python benchmarks/scaling.py     # about five minutes, 10 GB

One query, one thread, width 32, the released code's settings. Writes
results/scaling_<hardware>_<date>.json and .png; the last line printed is JSON.
"""

import json
import re
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.kernels.interface import QueryView
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.noise import identity_noise
from knowformer.seeding import generator
from knowformer.storage.atomic_files import atomic_path, write_text
from knowformer.system.allocator import keep_freed_memory
from knowformer.system.environment import describe_environment

RESULTS = Path(__file__).parent / "results"
NUM_RELATIONS = 20
ENTITIES = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
EDGES = [20_000, 60_000, 200_000, 600_000, 2_000_000]
EDGES_OF_ENTITY_SWEEP = 100_000
ENTITIES_OF_EDGE_SWEEP = 20_000
SECONDS = 4.0  # for the repeats of one measurement
ONE = {"entities": "entity", "edges": "edge"}
PASSES = {"forward": "scoring", "backward": "scoring and its gradient"}


def random_graph(num_entities: int, num_edges: int) -> KnowledgeGraph:
    """Uniformly random facts; an edge and its inverse come from each."""
    draw = generator(0, "graph", num_entities, num_edges)
    size = (num_edges // 2,)
    heads, tails = (torch.randint(num_entities, size, generator=draw) for _ in range(2))
    relations = torch.randint(NUM_RELATIONS, size, generator=draw)
    return KnowledgeGraph(
        Vocabulary((str(i) for i in range(num_entities)), kind="entity"),
        Vocabulary((str(i) for i in range(NUM_RELATIONS)), kind="relation"),
        torch.stack([heads, relations, tails], 1).unique(dim=0),
    )


def milliseconds(work: Callable[[], None]) -> dict[str, float]:
    """Median and quartiles of a few repeats, after one that is not timed."""
    work()
    samples: list[float] = []
    while len(samples) < 3 or (sum(samples) < 1e3 * SECONDS and len(samples) < 20):
        before = time.perf_counter()
        work()
        samples.append(1e3 * (time.perf_counter() - before))
    low, middle, high = statistics.quantiles(samples, n=4)
    return {"median": middle, "first_quartile": low, "third_quartile": high}


def measure(num_entities: int, num_edges: int) -> dict[str, Any]:
    """Times one query on a random graph."""
    graph = random_graph(num_entities, num_edges)
    model = KnowFormer(ModelConfig(), 2 * NUM_RELATIONS)
    initialize(model, generator=generator(0, "init"))
    noise = identity_noise(model.config, graph.entity_keys, seed=0)
    query = torch.tensor([0])
    view = QueryView.whole(graph.adjacency.edges, query)

    def forward() -> None:
        with torch.inference_mode():
            model(view, query, identity_noise=noise)

    def backward() -> None:
        model(view, query, identity_noise=noise).square().mean().backward()

    case = {
        "entities": num_entities,
        "edges": graph.adjacency.num_edges,
        "forward": milliseconds(forward),
        "backward": milliseconds(backward),
    }
    shown = ", ".join(f"{case[key]['median']:.1f} ms {PASSES[key]}" for key in PASSES)
    print(f"{num_entities:>9,} entities {case['edges']:>9,} edges: {shown}", flush=True)
    return case


def fit(cases: list[dict[str, Any]], over: str, timed: str) -> dict[str, float]:
    """A straight line through the medians by relative error; how far the points are from it."""
    x = np.array([case[over] for case in cases], dtype=float)
    y = np.array([case[timed]["median"] for case in cases])
    slope, start = np.linalg.lstsq(np.stack([x / y, 1 / y], 1), np.ones_like(y), rcond=None)[0]
    ratios = y / (slope * x + start)
    return {
        "ms_at_zero": float(start),
        "nanoseconds_each": float(1e6 * slope),
        "lowest_ratio_to_line": float(ratios.min()),
        "highest_ratio_to_line": float(ratios.max()),
    }


def draw(record: dict[str, Any], path: Path) -> None:
    """Two panels, points and their straight lines."""
    figure = Figure(figsize=(9.6, 4.0), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, over in zip(axes, ("entities", "edges"), strict=True):
        cases = record[f"over_{over}"]
        xs = np.geomspace(cases[0][over], cases[-1][over], 100)
        for timed, colour in (("forward", "#1f5fbf"), ("backward", "#d9480f")):
            line = record["lines"][over][timed]
            ys = [case[timed]["median"] for case in cases]
            each = f"{line['nanoseconds_each']:.0f} ns per {ONE[over]}"
            axis.plot(xs, line["ms_at_zero"] + 1e-6 * line["nanoseconds_each"] * xs,
                      color=colour, linewidth=1.0, alpha=0.6)  # fmt: skip
            axis.plot([case[over] for case in cases], ys, "o", color=colour, markersize=5,
                      label=f"{PASSES[timed]}: {each}")  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel=over, ylabel="milliseconds a query")
        other = "edges" if over == "entities" else "entities"
        fixed = EDGES_OF_ENTITY_SWEEP if over == "entities" else ENTITIES_OF_EDGE_SWEEP
        axis.set_title(f"more {over}, {fixed:,} {other}", loc="left", fontsize=11)
        axis.legend(frameon=False, fontsize=9, loc="upper left")
        axis.spines[["top", "right"]].set_visible(False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)


def main() -> None:
    """Measures, stores and draws."""
    keep_freed_memory()
    torch.set_num_threads(1)
    record: dict[str, Any] = {
        "command": ["python", "benchmarks/scaling.py"],
        "environment": describe_environment(),
        "over_entities": [measure(v, EDGES_OF_ENTITY_SWEEP) for v in ENTITIES],
        "over_edges": [measure(ENTITIES_OF_EDGE_SWEEP, e) for e in EDGES],
    }
    record["lines"] = {
        over: {timed: fit(record[f"over_{over}"], over, timed) for timed in PASSES}
        for over in ("entities", "edges")
    }
    processor = record["environment"]["hardware"]["processor"].lower()
    name = re.sub(r"\W+", "-", processor).strip("-")
    target = RESULTS / f"scaling_{name}_{datetime.now(UTC):%Y-%m-%d}.json"
    write_text(target, json.dumps(record, indent=1) + "\n")
    draw(record, target.with_suffix(".png"))
    print(json.dumps({"results": str(target), "lines": record["lines"]}))


if __name__ == "__main__":
    main()
