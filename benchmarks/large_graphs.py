"""Time and memory of large graphs: import, training, start, a question, a search of names.

    python benchmarks/large_graphs.py 10000 100000 1000000            # entities
    python benchmarks/large_graphs.py 5000000 --folder /large/disk    # some 25 GB of disk

Each graph has ten facts per entity (``make_large_graph.py``). Every stage is a process of its own:
seconds of the clock and of the processor, in this order, and the most memory it held; pages of
mapped files count, though the system may take them back. Training runs for ``--minutes`` on one
thread. The folder keeps what was made and measured: a stage that is done is not run again; remove
it in the end. Writes results/large_graphs_<hardware>_<date>.json, joined with what is there of
other sizes; the last line printed is JSON.
"""

import argparse
import json
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from make_large_graph import write_graph

FACTS_PER_ENTITY = 10
NUM_QUESTIONS = 60
WARM_UPS = 10
KNOWFORMER = [sys.executable, "-m", "knowformer", "--quiet"]
SEARCHED = ("kaka", "zor eth", "quamiqua dupelst", "nothing of the kind")

ASK = """
import json, sys, time
from pathlib import Path
from tempfile import TemporaryDirectory
from knowformer.live.snapshots import LiveGraph
from knowformer.reasoner import Reasoner
from knowformer.server.names import Names
times = [(time.perf_counter(), time.process_time())]

def tick():
    times.append((time.perf_counter(), time.process_time()))
    return [after - before for before, after in zip(*times[-2:])]

run, number, typed = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
reasoner = Reasoner.from_pretrained(run, threads=1)
found = {"open_seconds": tick()}
with TemporaryDirectory() as folder:
    live = LiveGraph.open(reasoner, Path(folder) / "live.sqlite")
    names = Names(live.snapshot())
    found["serve_seconds"] = tick()
    entity, relation = reasoner.graph.entities.name, reasoner.graph.relations.name
    pairs = list(dict.fromkeys((h, r) for h, r, _ in reasoner.dataset.test.facts.tolist()))
    for head, asked in pairs[:: max(1, len(pairs) // number)][:number]:
        reasoner.answer(head=entity(head), relation=relation(asked))
        found.setdefault("answer_seconds", []).append(tick())
    for text in typed:
        names.entities(live.snapshot(), text, 10)
        found.setdefault("search_seconds", []).append(tick())
    live.close()
print(json.dumps(found))
"""


def run(command: list[str]) -> tuple[dict[str, float], str]:
    """Runs a command; returns what it took and what it printed."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # A process of its own in between: the peak is of this command, not of those before it.
    measured = subprocess.run(
        [
            sys.executable,
            "-c",
            "import resource, subprocess, sys; r = subprocess.run(sys.argv[1:]); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(r.returncode)",
            *command,
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    clock, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    *printed, peak = measured.stdout.splitlines()
    took = {
        "clock_seconds": clock,
        "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_gb": int(peak) / 1e6,
    }
    return took, "\n".join(printed)


def quartiles(seconds: list[list[float]]) -> dict[str, dict[str, float]]:
    """Quartiles in milliseconds of the clock and of the processor, after the warm-ups."""
    result: dict[str, dict[str, float]] = {}
    for name, column in zip(("clock_ms", "processor_ms"), zip(*seconds, strict=True), strict=True):
        low, middle, high = statistics.quantiles([1e3 * each for each in column[WARM_UPS:]], n=4)
        result[name] = {"first_quartile": low, "median": middle, "third_quartile": high}
    return result


class Case:
    """A graph of one size; what is measured is kept with it, so that no stage runs twice."""

    def __init__(self, num_entities: int, folder: Path, minutes: float) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "measured.json"
        self.measured: dict[str, Any] = {"entities": num_entities, "facts": 0}
        if self._file.exists():
            self.measured = json.loads(self._file.read_text())
        self._minutes = minutes

    def measure(self) -> dict[str, Any]:
        """Goes through the stages that are not done."""
        for stage in (self.make, self.read, self.train, self.ask):
            name = stage.__name__
            if name not in self.measured:
                self.measured[name] = stage()
                print(json.dumps({name: self.measured[name]}), file=sys.stderr)
                self._file.write_text(json.dumps(self.measured))
        return self.measured

    def make(self) -> dict[str, float]:
        """Writes the facts as text."""
        number, facts = self.measured["entities"], self.folder / "facts.tsv"
        self.measured["facts"] = write_graph(facts, number, FACTS_PER_ENTITY * number)
        return {"text_gb": facts.stat().st_size / 1e9}

    def read(self) -> dict[str, float]:
        """Imports them."""
        data = self.folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        facts = self.folder / "facts.tsv"
        took, _ = run([*KNOWFORMER, "import", str(facts), "--out", str(data), "--mapped"])
        return took | {
            "mapped_gb": sum(path.stat().st_size for path in data.rglob("*")) / 1e9,
        }

    def train(self) -> dict[str, float]:
        """Trains for some minutes."""
        trained = self.folder / "run"
        shutil.rmtree(trained, ignore_errors=True)
        limits = ["--threads", "1", "--max-minutes", str(self._minutes)]
        data = str(self.folder / "data")
        return run([*KNOWFORMER, "train", data, "--out", str(trained), *limits])[0]

    def ask(self) -> dict[str, Any]:
        """Starts, asks and searches; once before, which compiles and brings pages in."""
        trained = str(self.folder / "run")
        asking = [sys.executable, "-c", ASK, trained, str(NUM_QUESTIONS), json.dumps(SEARCHED)]
        run(asking)
        took, printed = run(asking)
        found = json.loads(printed.splitlines()[-1])
        answers = found.pop("answer_seconds")
        return took | found | {"first_answer_seconds": answers[0], "answer": quartiles(answers)}


def main() -> None:
    """Measures, prints and stores."""
    from knowformer.storage.atomic_files import write_text
    from knowformer.system.environment import describe_environment

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entities", type=int, nargs="+")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--minutes", type=float, default=2.0)
    given = parser.parse_args()
    environment = describe_environment()
    hardware = re.sub(r"\W+", "-", environment["hardware"]["processor"].lower()).strip("-")
    name = f"large_graphs_{hardware}_{datetime.now(UTC).date()}.json"
    target = Path(__file__).parent / "results" / name
    for number in given.entities:
        folder = given.folder or Path(tempfile.gettempdir()) / "large_graphs"
        case = Case(number, folder / str(number), given.minutes).measure()
        stored = json.loads(target.read_text()) if target.exists() else {"cases": []}
        others = [each for each in stored["cases"] if each["entities"] != number]
        result = {
            "command": ["python", *sys.argv],
            "environment": environment,
            "cases": sorted([*others, case], key=lambda each: each["entities"]),
        }
        write_text(target, json.dumps(result, indent=2) + "\n")
        print(json.dumps(case))


if __name__ == "__main__":
    main()
