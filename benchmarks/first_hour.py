"""The first hour with one's own graph: train with nothing but a time limit, then evaluate.

    KNOWFORMER_DATA=DIR python benchmarks/first_hour.py --minutes 5                 # all graphs
    ... benchmarks/first_hour.py hetionet hpo --minutes 5 15 60 --runs runs/trial
    python benchmarks/first_hour.py --table                # the table in docs/guides/first_hour.md

Each trial is two commands as a user types them, with no setting but the time: ``knowformer train
GRAPH --max-minutes N``, then ``knowformer evaluate`` on a sample of the test facts. The graphs are
of users' kinds, not benchmarks that the defaults were chosen on: two large biomedical graphs
without a split, and the development graphs. Trials are stored one by one in
``results/first_hour.json``, in place of earlier ones with the same graph and minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from knowformer.storage.atomic_files import write_text
from knowformer.system.environment import describe_environment

RESULTS = Path(__file__).parent / "results" / "first_hour.json"
GRAPHS = {
    "hetionet": "graphs/hetionet/facts.txt",
    "hpo": "graphs/hpo/facts.txt",
    "ddb14": "development/ddb14",
    "kg20c": "development/kg20c",
    "inferwiki16k": "development/inferwiki16k",
    "wiki27k": "development/wiki27k",
}
NUM_FACTS = 2000  # of the test facts, asked both ways
HEADER = (
    "| graph | minutes | took | model | rules | popularity | hits@10 | above .1: said / true |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def knowformer(*words: str | Path, threads: int, log: Path) -> tuple[str, float]:
    """Runs a command; returns what it prints, and its seconds. Its progress goes to a log."""
    command = [sys.executable, "-m", "knowformer", *map(str, words), "--threads", str(threads)]
    started = time.perf_counter()
    with log.open("a", encoding="utf-8") as errors:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=True)
    return done.stdout, time.perf_counter() - started


def trial(graph: str, minutes: float, runs: Path, threads: int) -> dict[str, Any]:
    """Trains on a graph for some minutes, and evaluates."""
    run = runs / f"{graph}-{minutes:g}"
    log = runs / f"{graph}-{minutes:g}.log"
    source = Path(os.environ["KNOWFORMER_DATA"]) / GRAPHS[graph]
    budget = ["--max-minutes", f"{minutes:g}"]
    printed, took = knowformer("train", source, "--out", run, *budget, threads=threads, log=log)
    print(printed, flush=True)
    few = ["--facts", str(NUM_FACTS), "--json"]
    printed, evaluation = knowformer("evaluate", run, *few, threads=threads, log=log)
    report = json.loads(printed)
    above = (report["calibration"] or {}).get("above", {}).get("after")
    return {
        "graph": graph,
        "minutes": minutes,
        "threads": threads,
        "train_seconds": round(took, 1),
        "evaluate_seconds": round(evaluation, 1),
        "facts": report["protocol"]["num_facts"],
        "test_facts": report["protocol"]["sampled_from"] or report["protocol"]["num_facts"],
        "realistic": report["realistic"],
        "pessimistic": report["pessimistic"],
        "baselines": {name: of["realistic"] for name, of in report["baselines"].items()},
        "view": report["view"],
        "above": above,
        "date": datetime.now(UTC).date().isoformat(),
        "environment": describe_environment(),
    }


def store(found: dict[str, Any]) -> None:
    """Adds a trial to the results, in place of an earlier one."""
    key = (found["graph"], found["minutes"])
    stored = [t for t in load() if (t["graph"], t["minutes"]) != key] + [found]
    order = list(GRAPHS)
    stored.sort(key=lambda t: (order.index(t["graph"]), t["minutes"]))
    write_text(RESULTS, json.dumps(stored, indent=1) + "\n")


def load() -> list[dict[str, Any]]:
    """Returns the stored trials."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def table(trials: list[dict[str, Any]]) -> str:
    """Returns trials as a table in Markdown."""
    return "\n".join([HEADER, *map(_row, trials)])


def _row(found: dict[str, Any]) -> str:
    minutes, seconds = divmod(round(found["train_seconds"]), 60)
    above, calibration = found["above"], "too few"
    if above and above["is_enough"]:
        calibration = f"{above['mean_probability']:.2f} / {above['share_true']:.2f}"
    rules, popularity = (found["baselines"][name]["mrr"] for name in ("rules", "popularity"))
    cells = [
        found["graph"],
        f"{found['minutes']:g}",
        f"{minutes}:{seconds:02d}",
        f"**{found['realistic']['mrr']:.3f}**",
        f"{rules:.3f}",
        f"{popularity:.3f}",
        f"{found['realistic']['hits@10']:.3f}",
        calibration,
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("graphs", nargs="*", choices=[[], *GRAPHS], help="all if none is named")
    parser.add_argument("--minutes", nargs="+", type=float, default=[5.0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=Path, default=Path("runs/first_hour"))
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    options = parser.parse_args()
    if not options.table:
        options.runs.mkdir(parents=True, exist_ok=True)
        for minutes in options.minutes:
            for graph in options.graphs or GRAPHS:
                store(trial(graph, minutes, options.runs, options.threads))
    print(table(load()))


if __name__ == "__main__":
    main()
