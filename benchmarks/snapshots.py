"""What it costs to add a fact to a graph of a million facts, and to remove one.

    python benchmarks/snapshots.py            # about a minute, 1 GB
    python benchmarks/snapshots.py --write    # also writes results/snapshots_<hardware>_<date>.json

One thread. Every snapshot follows the one before. The last line printed is JSON.
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.kernels.interface import Edges
from knowformer.queries.known_answers import KnownAnswers
from knowformer.seeding import generator
from knowformer.storage.atomic_files import write_text
from knowformer.storage.triples_io import NamedTriple
from knowformer.system.allocator import keep_freed_memory
from knowformer.system.environment import describe_environment

RESULTS = Path(__file__).parent / "results"
NUM_ENTITIES = 100_000
NUM_RELATIONS = 20
NUM_FACTS = 1_000_000
REPEATS = 21
BULK = 1_000

T = TypeVar("T")


def random_graph() -> KnowledgeGraph:
    """Uniformly random facts."""
    draw = generator(0, "snapshots")
    sizes = (NUM_ENTITIES, NUM_RELATIONS, NUM_ENTITIES)
    columns = [torch.randint(size, (NUM_FACTS,), generator=draw) for size in sizes]
    return KnowledgeGraph(
        Vocabulary((f"e{number}" for number in range(NUM_ENTITIES)), kind="entity"),
        Vocabulary((f"r{number}" for number in range(NUM_RELATIONS)), kind="relation"),
        torch.stack(columns, 1),
    )


def triple(number: int, *, new: bool) -> NamedTriple:
    """A fact that the graph does not have, with a new entity or between old ones."""
    head = f"new{number}" if new else f"e{number}"
    return head, f"r{number % NUM_RELATIONS}", f"e{(7 * number + 1) % NUM_ENTITIES}"


class Stopwatch:
    """Milliseconds of what is timed, by name: on the clock, and of the processor.

    The second are what an idle machine takes: other work on this one does not count.
    """

    def __init__(self) -> None:
        self.samples: dict[str, list[tuple[float, float]]] = {}

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Does the work, and takes its time."""
        before, processor = time.perf_counter(), time.process_time()
        result = work()
        taken = (time.perf_counter() - before, time.process_time() - processor)
        self.samples.setdefault(name, []).append(taken)
        return result

    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """Median and quartiles; a single sample is all three."""
        summary: dict[str, dict[str, dict[str, float]]] = {}
        for name, samples in self.samples.items():
            columns = zip(("clock", "processor"), zip(*samples, strict=True), strict=True)
            summary[name] = {kind: quartiles(seconds) for kind, seconds in columns}
            shown = ", ".join(f"{kind} {q['median']:.2f} ms" for kind, q in summary[name].items())
            print(f"{name:>32}: {shown}", flush=True)
        return summary


def quartiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    several = seconds if len(seconds) > 1 else [*seconds, *seconds]
    low, middle, high = (1e3 * value for value in statistics.quantiles(several, n=4))
    return {"median": middle, "first_quartile": low, "third_quartile": high}


def measure(timed: Stopwatch) -> None:
    """Grows one graph fact by fact, and checks that it is the graph built anew."""
    graph = random_graph()
    timed.time("build: sort all facts", lambda: graph.adjacency)
    time_use(timed, "build", graph)
    for number in range(REPEATS):
        added = triple(number, new=False)
        graph = time_change(timed, "add a fact of old entities", graph, added=[added])
        time_use(timed, "after one fact", graph)
    for number in range(REPEATS):
        added = triple(number, new=True)
        graph = time_change(timed, "add a fact of a new entity", graph, added=[added])
        time_use(timed, "after one fact", graph)
    for number in range(REPEATS):
        removed = triple(number, new=True)
        graph = time_change(timed, "remove a fact", graph, removed=[removed])
        time_use(timed, "after one fact", graph)
    bulk = [triple(number, new=True) for number in range(BULK)]
    graph = time_change(timed, f"add {BULK:,} facts", graph, added=bulk)
    time_use(timed, f"after {BULK:,} facts", graph)
    anew = KnowledgeGraph(Vocabulary(graph.entities, kind="entity"), graph.relations, graph.facts)
    assert_same(graph, anew)


def time_change(
    timed: Stopwatch, name: str, graph: KnowledgeGraph, **changes: list[NamedTriple]
) -> KnowledgeGraph:
    """Times a change together with a question to the adjacency and to the known answers."""

    def change() -> KnowledgeGraph:
        after = graph.with_facts(**changes)
        zeros = torch.zeros(1, 3, dtype=torch.long)
        after.adjacency.has_fact(zeros)
        KnownAnswers.of(after).lookup(zeros[:, 0], zeros[:, 1])
        return after

    return timed.time(name, change)


def time_use(timed: Stopwatch, when: str, graph: KnowledgeGraph) -> None:
    """Times what is made when it is first asked for."""
    timed.time(f"{when}: edges for kernels", lambda: graph.adjacency.edges)
    timed.time(f"{when}: keys of names", lambda: graph.entity_keys)
    timed.time(f"{when}: list of facts", lambda: graph.facts)


def assert_same(graph: KnowledgeGraph, anew: KnowledgeGraph) -> None:
    """Every bit must be the same."""
    assert np.array_equal(graph.entity_keys, anew.entity_keys)
    assert np.array_equal(graph.adjacency.by_query.keys, anew.adjacency.by_query.keys)
    for field in fields(Edges):
        value, wanted = (getattr(g.adjacency.edges, field.name) for g in (graph, anew))
        same = torch.equal(value, wanted) if isinstance(wanted, Tensor) else value == wanted
        assert same, field.name


def main() -> None:
    """Measures, prints, and stores if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the results")
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    timed = Stopwatch()
    measure(timed)
    record: dict[str, Any] = {
        "command": ["python", "benchmarks/snapshots.py"],
        "environment": describe_environment(),
        "graph": {"entities": NUM_ENTITIES, "relations": NUM_RELATIONS, "facts": NUM_FACTS},
        "repeats": REPEATS,
        "milliseconds": timed.summary(),
    }
    if arguments.write:
        processor = record["environment"]["hardware"]["processor"].lower()
        name = re.sub(r"\W+", "-", processor).strip("-")
        target = RESULTS / f"snapshots_{name}_{datetime.now(UTC):%Y-%m-%d}.json"
        write_text(target, json.dumps(record, indent=1) + "\n")
    print(json.dumps({"milliseconds": record["milliseconds"]}))


if __name__ == "__main__":
    main()
