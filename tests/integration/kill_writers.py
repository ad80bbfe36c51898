"""kill -9 of a process in which eight threads write to a store, at random moments.

    python -m tests.integration.kill_writers --kills 50

Each time a child process opens the store and writes: requests of three facts, and accepted
proposals. It tells every request that was acknowledged, until it is killed. Then the store is
opened again: what was acknowledged must be there, nothing may be half there, and the requests that
were under way, made again with their keys, must be made once. Prints the counts as JSON.
"""

import argparse
import json
import os
import random
import signal
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import torch

from knowformer import KnowledgeGraph, ModelConfig, Reasoner, RunConfig
from knowformer.data.dataset import Dataset, Split
from knowformer.graph.inverse import num_with_inverses
from knowformer.live.decisions import Decision
from knowformer.live.facts import Change
from knowformer.live.snapshots import LiveGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.runs.folder import Bundle

WRITERS = 8
FACTS = 3  # of a request
SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=1)


def build_reasoner() -> Reasoner:
    """A small graph, and a model that nobody asks."""
    graph = KnowledgeGraph.from_triples([(f"e{n}", "next", f"e{n + 1}") for n in range(50)])
    splits = [
        Split(name, graph, graph.facts[:0], graph.facts) for name in ("train", "valid", "test")
    ]
    model = KnowFormer(SMALL, num_with_inverses(len(graph.relations)))
    dataset = Dataset("chain", *splits)
    bundle = Bundle(Path("run"), RunConfig(model=SMALL), dataset, model.eval(), "softmax")
    return Reasoner(bundle, graph, threads=1)


def request(name: str) -> list[Change]:
    """Facts about a new entity."""
    return [Change(name, "next", f"e{number}", why="written") for number in range(FACTS)]


def make(live: LiveGraph, name: str) -> None:
    """Makes a request with its name as key: every third is an accepted proposal."""
    if int(name.rpartition(".")[2]) % 3 == 2:
        live.decide(Decision(name, "next", "e0", "accept"), add_fact=True, key=name)
    else:
        live.change(request(name), author="writer", key=name)


def write(reasoner: Reasoner, path: Path, told: int, start: str) -> None:
    """Writes from several threads, until it is killed."""
    live = LiveGraph.open(reasoner, path)

    def work(writer: int) -> None:
        number = 0
        while True:
            name = f"{start}.{writer}.{number}"
            os.write(told, f"begin {name}\n".encode())
            make(live, name)
            os.write(told, f"done {name}\n".encode())
            number += 1

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def killed_writer(
    reasoner: Reasoner, path: Path, start: str, seconds: float
) -> dict[str, set[str]]:
    """Starts a process that writes, kills it, and returns the requests begun and acknowledged."""
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        try:
            write(reasoner, path, telling, start)
        finally:
            os._exit(1)
    os.close(telling)
    # Read all the while: a full pipe would stop the writers.
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(os.fdopen(told)))
    reader.start()
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "the writer ended by itself"
    reader.join()
    words = [line.split() for line in lines]
    return {what: {name for kind, name in words if kind == what} for what in ("begin", "done")}


def check(reasoner: Reasoner, path: Path, told: dict[str, set[str]]) -> Counter[str]:
    """Opens the store after a kill, and counts what was lost, half there or made twice."""
    began = time.monotonic()
    live = LiveGraph.open(reasoner, path)
    counts = Counter({"milliseconds_to_open": round(1e3 * (time.monotonic() - began))})
    with closing(live), closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        decided = {head for (head,) in connection.execute("SELECT head FROM decisions")}
        rows = Counter(head for (head,) in connection.execute("SELECT head FROM changes"))
        counts["lost"] = len(told["done"] - rows.keys())
        counts["half"] = sum(rows[name] != (1 if name in decided else FACTS) for name in rows)
        (version,) = connection.execute("SELECT coalesce(max(id), 0) FROM changes").fetchone()
        assert version == live.snapshot().version == sum(rows.values())
        graph = live.snapshot().graph
        assert len(graph.facts) == len(reasoner.graph.facts) + sum(rows.values())
        under_way = told["begin"] - told["done"]
        counts["acknowledged"] = len(told["done"])
        counts["stored_unacknowledged"] = len(under_way & rows.keys())
        assert len(under_way) <= WRITERS
        for name in sorted(under_way):
            make(live, name)
            make(live, name)
        again = Counter(head for (head,) in connection.execute("SELECT head FROM changes"))
        assert again.keys() == rows.keys() | told["begin"]
        counts["twice"] = sum(again[name] > FACTS for name in again)
    return counts


def main() -> None:
    """Kills again and again, and prints what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=2.0, help="a writer's longest life")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    draw, reasoner, total = random.Random(seed), build_reasoner(), Counter[str]()
    reasoner.graph.adjacency.by_query  # noqa: B018 - made once, before the children are
    with tempfile.TemporaryDirectory() as folder:
        for kill in range(arguments.kills):
            # A new store every fifth time, and then a short life: it may die while it is made.
            is_new = kill % 5 == 0
            path = Path(folder) / f"{kill // 5}" / "live.sqlite"
            seconds = draw.uniform(0.0, arguments.seconds * (0.1 if is_new else 1.0))
            told = killed_writer(reasoner, path, f"{kill}", seconds)
            counts = check(reasoner, path, told)
            slowest = max(total.pop("milliseconds_to_open", 0), counts.pop("milliseconds_to_open"))
            total += counts + Counter({"kills": 1, "milliseconds_to_open": slowest})
    wrong = {name: total[name] for name in ("lost", "half", "twice")}
    print(json.dumps({**total, **wrong, "seed": seed}))  # noqa: T201
    raise SystemExit(any(wrong.values()))


if __name__ == "__main__":
    main()
