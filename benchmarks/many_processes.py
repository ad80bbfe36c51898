"""Training on several processes: the same bits, also after kill -9, and how much faster.

    python benchmarks/many_processes.py bits                  # 1, 2 and 3 processes on this machine
    python benchmarks/many_processes.py kill --times 10       # kill -9 of one, on and on, resumed
    python benchmarks/many_processes.py speed --pairs 5       # one process, torchrun with 1 and 2
    sudo python benchmarks/many_processes.py machines         # network namespaces, by root alone

Everything is started as a user types it. ``machines`` gives each process a network namespace with
an address of its own, behind one bridge, and a working folder of its own: nothing but messages
goes from one to the other. The last line printed is JSON.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MODEL = {
    "model.hidden_dim": 16,
    "model.num_heads": 4,
    "model.num_layers": 1,
    "model.num_query_key_hops": 1,
    "model.num_value_hops": 2,
}
SHORT = MODEL | {"training.max_epochs": 2, "training.checkpoint_minutes": 0}
PORT = 29411


def train(
    graph: str, run: Path, settings: dict[str, Any], launcher: Sequence[str] = ()
) -> list[str]:
    """Returns the command that trains, in one process or by torchrun."""
    chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    words = ["-m", "knowformer", "train", graph, "--out", str(run), "--resume", "--threads", "1"]
    return [sys.executable, *launcher, *words, *chosen]


def torchrun(processes: int, *options: str) -> list[str]:
    """Returns the words that start some processes on this machine."""
    return ["-m", "torch.distributed.run", *options, "--nproc-per-node", str(processes)]


def checksum(run: Path) -> str:
    """Returns that of the weights."""
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()[:16]


def same_bits(graph: str, folder: Path) -> dict[str, Any]:
    """Trains on 1, 2 and 3 processes, on the whole graph and in views."""
    found: dict[str, Any] = {}
    for name, more in {"whole graph": {}, "views": {"model.view_size": 8}}.items():
        sums: list[str] = []
        for processes in (0, 1, 2, 3):
            run = folder / f"{name}-{processes}"
            launcher = torchrun(processes) if processes else ()
            subprocess.run(train(graph, run, SHORT | more, launcher), check=True)
            sums.append(checksum(run))
        found[name] = {"weights": sums, "equal": len(set(sums)) == 1}
    return found


def rank_of(pid: int) -> int | None:
    """Returns the rank that torchrun has given to a process; None if it has given none."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    ranks = [entry[5:] for entry in variables if entry.startswith(b"RANK=")]
    return int(ranks[0]) if ranks else None


def workers_of(launcher: int) -> dict[int, int]:
    """Returns the process ids of what torchrun has started, by rank."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(launcher)], capture_output=True, text=True, check=False
    )
    ranks = {rank_of(int(pid)): int(pid) for pid in listed.stdout.split()}
    return {rank: pid for rank, pid in ranks.items() if rank is not None}


def killed(graph: str, folder: Path, times: int) -> dict[str, Any]:
    """Kills one process of a run at random moments, resumes it on another number of them."""
    settings = SHORT | {"training.max_epochs": 6}
    quiet, run, kills = folder / "undisturbed", folder / "killed", list[dict[str, Any]]()
    started = time.monotonic()
    subprocess.run(train(graph, quiet, settings), check=True)
    longest = time.monotonic() - started
    while len(kills) < times:
        processes = random.choice((2, 3))
        command = train(graph, run, settings, torchrun(processes))
        launched = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        while len(workers := workers_of(launched.pid)) < processes and launched.poll() is None:
            time.sleep(0.05)
        moment = random.uniform(0.0, longest)
        time.sleep(moment)
        rank = random.randrange(processes)
        if launched.poll() is None:
            os.kill(workers[rank], signal.SIGKILL)
        said = (launched.communicate()[1] or b"").decode()
        if launched.returncode == 0:
            shutil.rmtree(run)  # it was over before: from the start again
            continue
        named = f"rank {rank} (process {workers[rank]} " in said
        kills.append({"after": round(moment, 2), "of": processes, "rank": rank, "named": named})
        print(kills[-1], "" if named else said[:600], flush=True)
    subprocess.run(train(graph, run, settings, torchrun(2)), check=True)
    return {"kills": kills, "equal": checksum(run) == checksum(quiet)}


def step_seconds(run: Path) -> float:
    """Returns the seconds of a run from its first training event to its last."""
    lines = (run / "events.jsonl").read_text("utf-8").splitlines()
    moments = [e["elapsed_seconds"] for e in map(json.loads, lines) if e["kind"] == "training"]
    return moments[-1] - moments[0]


def speed(graph: str, folder: Path, pairs: int, epochs: float, width: int) -> dict[str, Any]:
    """Times training alternately: a plain process, one and two by torchrun."""
    settings = {"model.hidden_dim": width, "training.max_epochs": epochs}
    ratios: dict[str, list[float]] = {"torchrun 1 / plain": [], "plain / torchrun 2": []}
    for number in range(pairs + 1):  # the first one compiles
        seconds: list[float] = []
        for processes in (0, 1, 2):
            run = folder / f"speed-{number}-{processes}"
            launcher = torchrun(processes) if processes else ()
            subprocess.run(train(graph, run, settings, launcher), check=True)
            seconds.append(step_seconds(run))
        if number:
            ratios["torchrun 1 / plain"].append(seconds[1] / seconds[0])
            ratios["plain / torchrun 2"].append(seconds[0] / seconds[2])
        print([round(each, 2) for each in seconds], flush=True)
    medians = {name: round(statistics.median(of), 3) for name, of in ratios.items()}
    return {"graph": graph, "ratios": ratios, "medians": medians}


@contextmanager
def namespaces(number: int) -> Generator[list[str]]:
    """Makes network namespaces with an address each, behind one bridge; removes them afterwards."""

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    names = [f"knowformer{each}" for each in range(number)]
    ip("link", "add", "kfbridge", "type", "bridge")
    try:
        ip("link", "set", "kfbridge", "up")
        for each, name in enumerate(names):
            ip("netns", "add", name)
            ip("link", "add", f"kf{each}", "type", "veth", "peer", "name", "kfnet", "netns", name)
            ip("link", "set", f"kf{each}", "master", "kfbridge", "up")
            ip("-n", name, "address", "add", f"10.77.0.{each + 1}/24", "dev", "kfnet")
            ip("-n", name, "link", "set", "kfnet", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)
        subprocess.run(["ip", "link", "delete", "kfbridge"], check=False)


def machines(graph: str, folder: Path, number: int) -> dict[str, Any]:
    """Trains on processes that reach one another by their addresses alone."""
    alone = folder / "alone"
    subprocess.run(train(graph, alone, SHORT), check=True)
    meeting = ("--nnodes", str(number), "--rdzv-backend", "c10d", "--rdzv-id", "bits")
    where = ("--rdzv-endpoint", f"10.77.0.1:{PORT}")
    with namespaces(number) as names:
        started: list[subprocess.Popen[bytes]] = []
        for each, name in enumerate(names):
            home = folder / name
            home.mkdir()
            # Names of machines are not known here: the first one is told that it is the first.
            host = ("--local-addr", f"10.77.0.{each + 1}", f"--rdzv-conf=is_host={each == 0}")
            launcher = torchrun(1, *meeting, *where, *host)
            command = ["ip", "netns", "exec", name, *train(graph, Path("run"), SHORT, launcher)]
            variables = os.environ | {"GLOO_SOCKET_IFNAME": "kfnet"}
            started.append(subprocess.Popen(command, cwd=home, env=variables))
        codes = [process.wait() for process in started]
    written = [home.parent.name for home in sorted(folder.glob("knowformer*/run"))]
    same = bool(written) and checksum(folder / written[0] / "run") == checksum(alone)
    return {"machines": number, "exit codes": codes, "wrote a run": written, "equal": same}


def main() -> None:
    """Parses what to measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=["bits", "kill", "speed", "machines"])
    parser.add_argument("--graph", default="nations")
    parser.add_argument("--times", type=int, default=10, help="of kill -9")
    parser.add_argument("--pairs", type=int, default=5, help="timed, of each kind")
    parser.add_argument("--epochs", type=float, default=2.0, help="of a timed run")
    parser.add_argument("--width", type=int, default=32, help="of a timed run")
    parser.add_argument("--machines", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.what == "bits":
            found = same_bits(options.graph, folder)
        elif options.what == "kill":
            found = killed(options.graph, folder, options.times)
        elif options.what == "speed":
            found = speed(options.graph, folder, options.pairs, options.epochs, options.width)
        else:
            found = machines(options.graph, folder, options.machines)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
