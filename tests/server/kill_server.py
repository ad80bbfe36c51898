"""kill -9 of ``knowformer serve`` at random moments, while eight clients write over HTTP.

    python -m tests.server.kill_server --kills 50

Clients add single facts, upload three rows, and accept proposals that become facts. The server that
is started after a kill must have all that got its 2xx, nothing by halves, and must make what was
under way once, however often it is asked again with its key. A store is killed five times, then
comes a new one. Prints the counts so far as JSON, a line for every kill.
``tests.integration.kill_writers`` does the same without a server, and much sooner.
"""

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import httpx
import torch

import knowformer.server.app  # noqa: F401 - before it is forked
from knowformer import KnowFormer
from knowformer.interfaces import cli
from knowformer.runs.folder import save_weights, start_run
from tests.integration.kill_writers import build_reasoner

CLIENTS = 8
KILLS_OF_A_STORE = 5
ROWS = 3  # of an upload
BASE_FACTS = 50


def make_run(folder: Path) -> Path:
    """Writes a run on a small graph, with weights as training begins with them."""
    reasoner = build_reasoner()
    start_run(folder, reasoner.config, reasoner.dataset)
    model = KnowFormer.initialized(reasoner.config.model, reasoner.dataset.relations)
    save_weights(folder, model, link="softmax")
    return folder


class Server:
    """``knowformer serve`` in a process of its own."""

    def __init__(self, run: Path, store: Path) -> None:
        """Starts it, and waits until it takes requests and has its kernels."""
        began = time.monotonic()
        told, telling = os.pipe()
        # Forked, so that nothing is imported again: that would take most of the time.
        self._process = os.fork()
        if self._process == 0:
            os.close(told)
            serve(run, store, telling)
        os.close(telling)
        self._printed = os.fdopen(told)
        line = self._printed.readline()
        address = re.match(r"Open (http://\S+/)", line)
        assert address, f"the server did not start: {line!r}"
        self._address = address[1]
        self.seconds_to_start = time.monotonic() - began
        with self.client() as client:
            while client.get("/readyz").status_code != 200:
                time.sleep(0.05)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self._address, timeout=60, trust_env=False, verify=False)

    def end(self, number: signal.Signals) -> None:
        os.kill(self._process, number)
        _, status = os.waitpid(self._process, 0)
        assert status == (number if number == signal.SIGKILL else 0), (
            f"it ended by itself: {status}"
        )
        self._printed.close()


def serve(run: Path, store: Path, telling: int) -> NoReturn:
    """Becomes the server."""
    try:
        sys.stdout = os.fdopen(telling, "w")
        sys.argv = ["knowformer", "serve", str(run), "--store", str(store)]
        sys.argv += ["--port", "0", "--threads", "1"]
        cli.main()
    except SystemExit as ended:
        os._exit(int(ended.code or 0))
    except BaseException:  # noqa: BLE001 - the parent's code must not go on in this process
        traceback.print_exc()
    os._exit(1)


def make(client: httpx.Client, name: str) -> httpx.Response:
    """Makes the request of a name, which is its key and the entity that it is about."""
    key = {"Idempotency-Key": name}
    fact: dict[str, Any] = {"head": name, "relation": "next", "tail": "e0"}
    kind = int(name.rpartition(".")[2]) % 3
    if kind == 0:
        return client.post("/v1/facts", json=fact, headers=key)
    if kind == 1:
        rows = "".join(f"{name}\tnext\te{number}\n" for number in range(ROWS))
        key["Content-Type"] = "text/tab-separated-values"
        return client.post("/v1/facts/upload", content=rows, headers=key)
    accepted = fact | {"verdict": "accept", "add_fact": True}
    return client.post("/v1/decisions", json=accepted, headers=key)


def wanted(name: str) -> tuple[int, int]:
    """Returns how many changes and decisions the request of a name makes."""
    kind = int(name.rpartition(".")[2]) % 3
    return (ROWS if kind == 1 else 1, int(kind == 2))


def write_until_killed(server: Server, start: str, seconds: float) -> tuple[set[str], set[str]]:
    """Has clients write, kills the server; returns the requests begun and acknowledged."""
    begun: set[str] = set()
    acknowledged: set[str] = set()
    refused: list[str] = []

    def work(writer: int) -> None:
        with server.client() as client:
            number = 0
            while True:
                name = f"{start}.{writer}.{number}"
                begun.add(name)
                try:
                    response = make(client, name)
                except httpx.TransportError:
                    return
                if not response.is_success:
                    refused.append(response.text)
                    return
                acknowledged.add(name)
                number += 1

    clients = [threading.Thread(target=work, args=(writer,)) for writer in range(CLIENTS)]
    for client in clients:
        client.start()
    time.sleep(seconds)
    server.end(signal.SIGKILL)
    for client in clients:
        client.join()
    assert refused == []
    return begun, acknowledged


def listed(client: httpx.Client, path: str) -> Counter[str]:
    """Counts all that is stored at an address by its head."""
    counts: Counter[str] = Counter()
    before: dict[str, int] = {}
    while True:
        page = client.get(path, params={"limit": 100, **before}).json()
        counts.update(item["head"] for item in page["items"])
        if page["next"] is None:
            return counts
        before = {"before": page["next"]}


def check(server: Server, begun: set[str], acknowledged: set[str]) -> Counter[str]:
    """Counts what was lost, is half there, or is made twice when it is asked for again."""
    with server.client() as client:
        changes, decisions = listed(client, "/v1/facts"), listed(client, "/v1/decisions")
        graph = client.get("/v1/graph").json()
        assert graph["snapshot"] == changes.total()
        assert graph["facts"] == BASE_FACTS + changes.total()
        there = changes.keys() | decisions.keys()
        counts = Counter(
            acknowledged=len(acknowledged),
            stored_unacknowledged=len((begun - acknowledged) & there),
            lost=len(acknowledged - there),
            half=sum((changes[name], decisions[name]) != wanted(name) for name in there),
        )
        for name in sorted(begun - acknowledged):
            for _ in range(2):
                assert make(client, name).is_success
        changes, decisions = listed(client, "/v1/facts"), listed(client, "/v1/decisions")
        assert changes.keys() == there | begun
        counts["twice"] = sum((changes[name], decisions[name]) != wanted(name) for name in begun)
    return counts


def faults(total: Counter[str]) -> dict[str, int]:
    """Returns what must be none; a sum of counters leaves zeros out."""
    return {name: total[name] for name in ("lost", "half", "twice")}


def main() -> None:
    """Kills again and again, and prints what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=2.0, help="a server's longest life")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    draw, total, slowest = random.Random(seed), Counter[str](), 0.0
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder) / "run")
        for kill in range(arguments.kills):
            store = Path(folder) / f"{kill // KILLS_OF_A_STORE}.sqlite"
            server = Server(run, store)
            begun, acknowledged = write_until_killed(
                server, f"{kill}", draw.uniform(0.0, arguments.seconds)
            )
            server = Server(run, store)
            slowest = max(slowest, server.seconds_to_start)
            total += check(server, begun, acknowledged) + Counter(kills=1)
            server.end(signal.SIGTERM)
            more = {"slowest_start_seconds": round(slowest, 1), "seed": seed}
            print(json.dumps({**total, **faults(total), **more}), flush=True)  # noqa: T201
    raise SystemExit(any(faults(total).values()))


if __name__ == "__main__":
    main()
