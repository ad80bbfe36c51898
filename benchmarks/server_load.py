"""Load on ``knowformer serve``, on this machine alone: clients that ask without a pause.

    python benchmarks/server_load.py RUN                             # 64 clients, two minutes
    python benchmarks/server_load.py RUN --clients 8 --seconds 10
    python benchmarks/server_load.py RUN --write                     # and keep the result

A server is started on the run and a store that goes afterwards. No question is asked twice with the
same options: answers that are remembered would flatter. The library is asked the same questions by
``answer_many``, before and after, in this process, while the server rests: ``ratio`` is the
server's rate over the library's mean. Clients run on the same cores as the server. Prints
requests a second, milliseconds (median, 95 %, 99 %), statuses, and the server's memory before and
after, and how long it took to start; the last line is JSON.
"""

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from knowformer import Reasoner
from knowformer.storage.atomic_files import write_text
from knowformer.system.environment import describe_environment

HERE = Path(__file__).parent
MAX_CLIENTS, MAX_SECONDS = 256, 600
LIBRARY_SECONDS = 10.0
CHUNK = 64  # questions that the library gets at once: as many as the server takes


class Questions:
    """Questions about a graph, none of them twice: another k makes another question of one."""

    def __init__(self, reasoner: Reasoner, *, typical: bool) -> None:
        graph, facts = reasoner.graph, reasoner.graph.facts
        entities, relations = graph.entities.names, graph.relations.names
        tails = {(entities[h], relations[r], None) for h, r, _ in facts.tolist()}
        heads = {(None, relations[r], entities[t]) for _, r, t in facts.tolist()}
        self._asked = sorted(tails | heads, key=str)
        random.Random(0).shuffle(self._asked)
        self._number = count()
        self._typical = typical

    def take(self) -> dict[str, Any]:
        """Returns a question as the server takes it."""
        turn, place = divmod(next(self._number), len(self._asked))
        parts = dict(zip(("head", "relation", "tail"), self._asked[place], strict=True))
        return {**parts, "k": 10 + turn, "typical": self._typical}

    def take_alike(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Returns questions with the same options, and these, as the library takes them."""
        asked = [self.take() for _ in range(CHUNK)]
        how = {name: asked[0][name] for name in ("k", "typical")}
        same = [each for each in asked if each["k"] == how["k"]]  # fewer, at the end of a turn
        return [{name: each[name] for name in ("head", "relation", "tail")} for each in same], how


def library_rate(reasoner: Reasoner, questions: Questions) -> float:
    """Returns questions a second of the library."""
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < LIBRARY_SECONDS:
        asked, how = questions.take_alike()
        done += len(list(reasoner.answer_many(asked, **how)))
    return done / (time.perf_counter() - started)


@contextmanager
def server(run: Path) -> Iterator[tuple[int, subprocess.Popen[str], float]]:
    """Starts a server at a free port; yields the port, and after how many seconds it was open."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("knowformer")), "serve", str(run)]
        command += ["--port", "0", "--store", f"{folder}/live.sqlite"]
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            address = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert address, "the server did not start"
            yield int(address[1]), process, time.perf_counter() - started
        finally:
            process.terminate()
            process.wait(60)


async def ask(reader: Any, writer: Any, method: str, path: str, body: str = "") -> int:
    """Sends a request on a connection that is kept, and returns the status."""
    content = body.encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n"
    writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
    answer = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = re.search(rb"content-length: (\d+)", answer)
    assert length, "a response without a length"
    await reader.readexactly(int(length[1]))
    return int(answer.split(b" ", 2)[1])


async def wait_until_ready(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while await ask(reader, writer, "GET", "/readyz") != 200:
        await asyncio.sleep(0.1)
    writer.close()


async def load(
    port: int, questions: Questions, *, clients: int, seconds: float
) -> tuple[list[float], Counter[int]]:
    """Asks without a pause; returns the seconds of each answer, and how many had which status."""
    end = time.perf_counter() + seconds
    taken: list[float] = []
    statuses: Counter[int] = Counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (started := time.perf_counter()) < end:
            status = await ask(reader, writer, "POST", "/v1/answer", json.dumps(questions.take()))
            statuses[status] += 1
            if status == 200:
                taken.append(time.perf_counter() - started)
            else:
                await asyncio.sleep(1)  # what Retry-After says
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return taken, statuses


def memory_mib(process: subprocess.Popen[str]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def measure(run: Path, *, clients: int, seconds: float, typical: bool) -> dict[str, Any]:
    reasoner = Reasoner.from_pretrained(run)
    questions = Questions(reasoner, typical=typical)
    list(reasoner.answer_many(questions.take_alike()[0]))  # kernels are loaded
    with server(run) as (port, process, seconds_to_open):
        asyncio.run(wait_until_ready(port))
        before = library_rate(reasoner, questions)
        asyncio.run(load(port, questions, clients=clients, seconds=min(5.0, seconds)))
        start = memory_mib(process)
        started = time.perf_counter()
        taken, statuses = asyncio.run(load(port, questions, clients=clients, seconds=seconds))
        elapsed = time.perf_counter() - started
        end = memory_mib(process)
        after = library_rate(reasoner, questions)
    percent = [1000 * cut for cut in statistics.quantiles(taken, n=100)]
    library = (before + after) / 2
    return {
        "run": run.name,
        "graph": repr(reasoner.graph),
        "clients": clients,
        "seconds_to_open": round(seconds_to_open, 1),
        "seconds": round(elapsed, 1),
        "typical": typical,
        "requests": sum(statuses.values()),
        "requests_per_second": round(len(taken) / elapsed, 1),
        "milliseconds": {
            "p50": round(percent[49], 1),
            "p95": round(percent[94], 1),
            "p99": round(percent[98], 1),
        },
        "statuses": dict(sorted(statuses.items())),
        "memory_mib": {"start": round(start), "end": round(end)},
        "library_per_second": [round(before, 1), round(after, 1)],
        "ratio": round(len(taken) / elapsed / library, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--typical", action="store_true", help="as the page asks")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    result = measure(
        given.run,
        clients=min(given.clients, MAX_CLIENTS),
        seconds=min(given.seconds, MAX_SECONDS),
        typical=given.typical,
    )
    environment = describe_environment()
    if given.write:
        processor = re.sub(r"\W+", "-", environment["hardware"]["processor"].lower()).strip("-")
        name = f"server_{given.run.name}_{processor}_{datetime.now(UTC):%Y-%m-%d}.json"
        content = {"command": sys.argv, "environment": environment, **result}
        write_text(HERE / "results" / name, json.dumps(content, indent=2) + "\n")
    for name, value in result.items():
        print(f"{name:22} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
