"""What a live graph costs: a fact more in the store of a million facts, a name among a million.

    python benchmarks/live.py            # about a minute, 2 GB
    python benchmarks/live.py --write    # also writes results/live_<hardware>_<date>.json

One thread. A fact is added as a server adds it: checked, written to disk, and in the snapshot that
the next answer is made from. Beside it stands what the disk takes of that: a row that is written to
a store of its own, and nothing else. Names are of one to three made-up words; some are searched for
by their beginning, some by a word, some misspelt by a letter. The last line printed is JSON.
"""

import argparse
import json
import random
import re
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from snapshots import RESULTS, Stopwatch, random_graph, triple

from knowformer import ModelConfig, Reasoner, RunConfig
from knowformer.data.dataset import Dataset, Split
from knowformer.data.name_search import NameSearch
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.live.database import Database
from knowformer.live.facts import Action, Change, insert_changes
from knowformer.live.requests import utc_now
from knowformer.live.snapshots import LiveGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.runs.folder import Bundle
from knowformer.storage.atomic_files import write_text
from knowformer.system.allocator import keep_freed_memory, keep_loaded_objects
from knowformer.system.environment import describe_environment

REPEATS = 21
WARM_UPS = 5
SEARCHES = 200
NUM_NAMES = 1_000_000
NUM_WORDS = 60_000
SYLLABLES = [f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("", "l", "n", "r")]
SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=1)


def reasoner_on(graph: KnowledgeGraph) -> Reasoner:
    """A model that nobody asks, on a graph."""
    splits = [Split(n, graph, graph.facts[:0], graph.facts) for n in ("train", "valid", "test")]
    model = KnowFormer(SMALL, num_with_inverses(len(graph.relations)))
    dataset = Dataset("random", *splits)
    bundle = Bundle(Path("run"), RunConfig(model=SMALL), dataset, model.eval(), "softmax")
    return Reasoner(bundle, graph, threads=1)


def write_row(database: Database, change: Change) -> None:
    """Writes a change to disk, in a transaction of its own."""
    with database.transaction() as connection:
        insert_changes(connection, [change], author=None, time=utc_now())


def measure_store(timed: Stopwatch, folder: Path) -> None:
    """Adds and removes facts one by one, then opens the store again."""
    reasoner = reasoner_on(random_graph())
    path = folder / "live.sqlite"
    with (
        closing(timed.time("open a new store", lambda: LiveGraph.open(reasoner, path))) as live,
        closing(Database(folder / "rows.sqlite")) as rows,
    ):
        for number in range(WARM_UPS):  # the first one sorts the facts
            live.change([Change(*triple(REPEATS + number, new=True))])
        actions: tuple[Action, ...] = ("add", "remove")
        for action in actions:
            for number in range(REPEATS):
                fact = triple(number, new=number % 2 == 0)
                change = Change(*fact, action)
                timed.time(f"{action} a fact", lambda change=change: live.change([change]))
                timed.time("write a row alone", lambda change=change: write_row(rows, change))
    with closing(timed.time("open it again", lambda: LiveGraph.open(reasoner, path))) as live:
        assert live.snapshot().version == WARM_UPS + 2 * REPEATS


def made_up_names(draw: random.Random) -> list[str]:
    """A million names; some words are in many of them, most in few."""
    words = list({"".join(draw.choices(SYLLABLES, k=draw.randint(2, 4))) for _ in range(NUM_WORDS)})
    weights = [1 / (10 + place) for place in range(len(words))]
    names: dict[str, None] = {}
    while len(names) < NUM_NAMES:
        drawn = draw.choices(words, weights, k=300_000)
        for place in range(0, len(drawn), 3):
            some = drawn[place : place + draw.randint(1, 3)]
            names[" ".join([*some, str(len(names) % 997)])] = None
    return list(names)[:NUM_NAMES]


def misspelt(name: str, draw: random.Random) -> str:
    """The name with a letter of its first word changed, left out or doubled."""
    place = draw.randrange(1, len(name.split()[0]))
    return name[:place] + draw.choice(["x", "", name[place] * 2]) + name[place + 1 :]


def measure_search(timed: Stopwatch) -> float:
    """Searches as one types; returns how many of the misspelt names were among the first ten."""
    draw = random.Random(0)
    names = made_up_names(draw)
    search = timed.time("index a million names", lambda: NameSearch(names))
    keep_loaded_objects()  # as a server does
    found = 0
    for name in draw.sample(names, SEARCHES):
        timed.time("search: a beginning", lambda name=name: search.search(name[:5]))
        timed.time("search: a word", lambda name=name: search.search(name.split()[-2]))
        wrong = misspelt(name, draw)
        matches = timed.time("search: misspelt", lambda wrong=wrong: search.search(wrong))
        found += name in [match.name for match in matches]
    for kind in ("a beginning", "a word", "misspelt"):
        slowest = sorted(processor for _, processor in timed.samples[f"search: {kind}"])
        print(f"{kind}: 99 of 100 within {1e3 * slowest[int(0.99 * SEARCHES)]:.1f} ms of processor")
    return found / SEARCHES


def main() -> None:
    """Measures, prints, and stores if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the results")
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    timed = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        measure_store(timed, Path(folder))
    found = measure_search(timed)
    record: dict[str, Any] = {
        "command": ["python", "benchmarks/live.py"],
        "environment": describe_environment(),
        "graph": {"facts": 1_000_000},
        "names": NUM_NAMES,
        "warm_ups": WARM_UPS,
        "repeats": {"changes": REPEATS, "searches": SEARCHES},
        "misspelt_names_among_the_first_ten": found,
        "milliseconds": timed.summary(),
    }
    if arguments.write:
        processor = record["environment"]["hardware"]["processor"].lower()
        name = re.sub(r"\W+", "-", processor).strip("-")
        target = RESULTS / f"live_{name}_{datetime.now(UTC):%Y-%m-%d}.json"
        write_text(target, json.dumps(record, indent=1) + "\n")
    print(json.dumps({"found": found, "milliseconds": record["milliseconds"]}))


if __name__ == "__main__":
    main()
