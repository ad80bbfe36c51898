"""Equal minutes: the shipped model trained further on a graph, against a model from nothing.

    KNOWFORMER_DATA=DIR python benchmarks/fine_tuning.py --minutes 10      # all graphs
    ... benchmarks/fine_tuning.py hpo --minutes 10         # one
    python benchmarks/fine_tuning.py --table               # the table in docs/concepts/any_graph.md

Both are trained at the same time, on one thread each, with no setting but the time: ``knowformer
train GRAPH --from shipped --max-minutes N`` and ``knowformer train GRAPH --max-minutes N``. Then
``knowformer evaluate`` ranks the same sample of the test facts, by them and by the shipped model as
it is. Stored graph by graph in ``results/fine_tuning.json``.
"""

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from knowformer.storage.atomic_files import write_text
from knowformer.system.environment import describe_environment

RESULTS = Path(__file__).parent / "results" / "fine_tuning.json"
GRAPHS = {
    "hpo": "graphs/hpo/facts.txt",
    "ddb14": "development/ddb14",
    "kg20c": "development/kg20c",
    "nell23k": "transductive/nell23k",
}
WAYS = {"fine-tuned": ["--from", "shipped"], "from nothing": []}
NUM_FACTS = 2000  # of the test facts, asked both ways
HEADER = (
    "| graph | minutes | untrained | fine-tuned | from nothing | rules | popularity |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def start(*words: str | Path, log: Path) -> subprocess.Popen[str]:
    """Starts a command; its progress goes to a log."""
    command = [sys.executable, "-m", "knowformer", *map(str, words), "--threads", "1"]
    with log.open("a", encoding="utf-8") as errors:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)


def finish(started: subprocess.Popen[str]) -> str:
    """Waits for a command and returns what it printed."""
    printed, _ = started.communicate()
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, started.args)
    return printed


def compare(graph: str, minutes: float, runs: Path) -> dict[str, Any]:
    """Trains both ways at once, and evaluates them and the shipped model."""
    source = Path(os.environ["KNOWFORMER_DATA"]) / GRAPHS[graph]
    log = runs / f"{graph}.log"
    folders = {way: runs / f"{graph}-{way.replace(' ', '-')}" for way in WAYS}
    budget = ["--max-minutes", f"{minutes:g}"]
    trainings = [
        start("train", source, "--out", folders[way], *budget, *words, log=log)
        for way, words in WAYS.items()
    ]
    for training in trainings:
        finish(training)
    few = ["--facts", str(NUM_FACTS), "--json"]
    asked: dict[str, Path] = {"untrained": source, **folders}
    reports = {
        way: json.loads(finish(start("evaluate", folder, *few, log=log)))
        for way, folder in asked.items()
    }
    baselines = reports["from nothing"]["baselines"]
    return {
        "graph": graph,
        "minutes": minutes,
        "facts": reports["from nothing"]["protocol"]["num_facts"],
        "realistic": {way: report["realistic"] for way, report in reports.items()},
        "pessimistic": {way: report["pessimistic"] for way, report in reports.items()},
        "baselines": {name: of["realistic"] for name, of in baselines.items()},
        "date": datetime.now(UTC).date().isoformat(),
        "environment": describe_environment(),
    }


def load() -> list[dict[str, Any]]:
    """Returns what is stored."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def store(found: dict[str, Any]) -> None:
    """Adds a graph to the results, in place of an earlier comparison of as many minutes."""
    key = (found["graph"], found["minutes"])
    stored = [of for of in load() if (of["graph"], of["minutes"]) != key] + [found]
    stored.sort(key=lambda of: (list(GRAPHS).index(of["graph"]), of["minutes"]))
    write_text(RESULTS, json.dumps(stored, indent=1) + "\n")


def table(stored: list[dict[str, Any]]) -> str:
    """Returns test MRR as a table in Markdown."""
    rows: list[str] = []
    for of in stored:
        ways = [of["realistic"][way]["mrr"] for way in ("untrained", *WAYS)]
        cells = [*ways, *(of["baselines"][name]["mrr"] for name in ("rules", "popularity"))]
        shown = " | ".join(f"{cell:.3f}" for cell in cells)
        rows.append(f"| {of['graph']} | {of['minutes']:g} | {shown} |")
    return "\n".join([HEADER, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("graphs", nargs="*", choices=[[], *GRAPHS], help="all if none is named")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--runs", type=Path, default=Path("runs/fine_tuning"))
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    options = parser.parse_args()
    if not options.table:
        options.runs.mkdir(parents=True, exist_ok=True)
        for graph in options.graphs or GRAPHS:
            store(compare(graph, options.minutes, options.runs))
    print(table(load()))


if __name__ == "__main__":
    main()
