"""Questions a second of ``answer --out FOLDER``: on Ray against in one process, and through kills.

    python benchmarks/batch_answers.py                      # 2 times 100,000 questions by each
    python benchmarks/batch_answers.py --questions 10000 --rounds 1
    python benchmarks/batch_answers.py --write              # and stores the result

A model of UMLS, trained for a moment (how good it is does not matter here), is asked for the tails
of every head and the heads of every tail, of every relation: 12,420 questions in an order drawn
once, again and again. With 20 answers each they are more than the cache of answers holds, which a
cycle then always finds empty: no question is answered from it. Both engines get as many cores, in
turns. ``answering`` is from the first shard to the last, ``in all`` is with starting Python, Ray,
and loading the run. At last the job runs on Ray once more; two workers and then the driver are
killed with ``kill -9``, and it goes on. All folders must have the same bytes. The last line printed
is JSON.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from knowformer import RunConfig, TrainingConfig, load_dataset, train
from knowformer.storage.atomic_files import write_text
from knowformer.system.environment import describe_environment

GRAPH, K = "umls-pykeen", 20


def write_questions(path: Path, number: int) -> int:
    """Writes questions and returns how many of them are different."""
    graph = load_dataset(GRAPH).train.graph
    pairs = [(e, r) for e in graph.entities.names for r in graph.relations.names]
    cycle = [f"{e}\t{r}\t?\n" for e, r in pairs] + [f"?\t{r}\t{e}\n" for e, r in pairs]
    random.Random(0).shuffle(cycle)
    path.write_text("".join(cycle[n % len(cycle)] for n in range(number)), "utf-8")
    return min(number, len(cycle))


class Job:
    """The same command, with one folder or another."""

    def __init__(self, run: Path, queries: Path, cores: int, shard_rows: int) -> None:
        self.shard_rows = shard_rows
        asked = ["answer", run, "--queries", queries, "-k", K, "--shard-rows", shard_rows]
        self._typed = [sys.executable, "-m", "knowformer", *map(str, asked)]
        self._engines = {
            "local": ["--threads", str(cores)],
            "ray": ["--engine", "ray", "--workers", str(cores), "--threads", "1"],
        }

    def start(self, engine: str, out: Path) -> subprocess.Popen[bytes]:
        """Starts it; what it starts in turn is known by a variable."""
        typed = [*self._typed, "--out", str(out), *self._engines[engine]]
        variables = os.environ | {"BENCHMARK_FOLDER": str(out)}
        return subprocess.Popen(typed, env=variables, stdout=subprocess.DEVNULL)

    def measure(self, engine: str, out: Path) -> dict[str, Any]:
        """Runs it to its end, and returns questions a second."""
        began = time.perf_counter()
        if self.start(engine, out).wait() != 0:
            raise SystemExit(f"the command failed: {engine}")
        seconds = time.perf_counter() - began
        return {"engine": engine, **speeds(out, seconds, self.shard_rows)}


def speeds(out: Path, seconds: float, shard_rows: int) -> dict[str, Any]:
    """Returns questions a second by the times of the receipts, and in all."""
    times = sorted(path.stat().st_mtime for path in receipts(out))
    number = json.loads((out / "summary.json").read_text("utf-8"))["questions"]
    answering = (number - shard_rows) / (times[-1] - times[0])
    return {"answering": answering, "in_all": number / seconds, "seconds": seconds}


def receipts(out: Path) -> list[Path]:
    return list((out / "receipts").glob("[0-9]*.json"))


def workers_of(out: Path) -> list[int]:
    """Returns the processes of Ray that answer into a folder."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"ShardWorker" not in (path / "cmdline").read_bytes():
                continue
            if str(out).encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


def run_through_kills(job: Job, out: Path, num_shards: int) -> dict[str, Any]:
    """Kills two workers and the driver on the way, and goes on."""
    began = time.perf_counter()
    process = job.start("ray", out)

    def wait(happened: Callable[[], Any]) -> Any:
        while not (found := happened()):
            if process.poll() is not None:
                raise SystemExit("the job ended before it could be killed: more questions!")
            time.sleep(0.05)
        return found

    for fraction in (0.2, 0.4):
        wait(lambda wanted=fraction * num_shards: len(receipts(out)) >= wanted)
        os.kill(wait(lambda: workers_of(out))[0], signal.SIGKILL)
    wait(lambda: len(receipts(out)) >= 0.6 * num_shards)
    process.kill()
    process.wait()
    left = len(receipts(out))
    if job.start("ray", out).wait() != 0:
        raise SystemExit("the job did not go on")
    kept = {"shards_before_the_driver_was_killed": left, "shards": len(receipts(out))}
    return {"seconds": time.perf_counter() - began, **kept}


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Answers by both engines in turns, then through kills; compares the bytes."""
    config = RunConfig(training=TrainingConfig(max_epochs=0.05), threads=arguments.cores)
    train(GRAPH, folder / "run", config=config, calibrate=False)
    distinct = write_questions(folder / "q.tsv", arguments.questions)
    job = Job(folder / "run", folder / "q.tsv", arguments.cores, arguments.shard_rows)
    cases: list[dict[str, Any]] = []
    for number in range(arguments.rounds):
        for engine in ("local", "ray"):
            cases.append(job.measure(engine, folder / f"{engine}{number}"))
            print({k: v if isinstance(v, str) else round(v, 1) for k, v in cases[-1].items()})
    ratios = {
        what: median(c[what] for c in cases if c["engine"] == "ray")
        / median(c[what] for c in cases if c["engine"] == "local")
        for what in ("answering", "in_all")
    }
    killed = run_through_kills(
        job, folder / "killed", -(-arguments.questions // arguments.shard_rows)
    )
    wanted = content(folder / "local0")
    same = all(content(path) == wanted for path in folder.iterdir() if (path / "receipts").is_dir())
    return {
        "graph": GRAPH,
        "questions": arguments.questions,
        "distinct_questions": distinct,
        "answers_each": K,
        "cores": arguments.cores,
        "cases": cases,
        "ray_to_local": ratios,
        "through_kills": {"workers": 2, "drivers": 1, "same_bytes": same, **killed},
    }


def main() -> None:
    """Measures, prints and stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--shard-rows", type=int, default=1024)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), arguments)
    environment = describe_environment()
    result = {
        "command": ["python", *sys.argv],
        "environment": environment,
        "load_average": {"before": load_before, "after": os.getloadavg()[0]},
        **measured,
    }
    if arguments.write:
        hardware = re.sub(r"\W+", "-", environment["hardware"]["processor"].lower()).strip("-")
        name = f"batch_answers_{hardware}_{datetime.now(UTC).date()}.json"
        write_text(Path(__file__).parent / "results" / name, json.dumps(result, indent=2) + "\n")
    print(json.dumps({k: measured[k] for k in ("ray_to_local", "through_kills")}))


if __name__ == "__main__":
    main()
