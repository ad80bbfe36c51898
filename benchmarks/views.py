"""How many answers lie in the views of their queries, what a view costs, and how that grows.

    KNOWFORMER_DATA=DIR python benchmarks/views.py     # about ten minutes, 4 GB
    ... benchmarks/views.py --write                    # also results/views_<hardware>_<date>.json
                                                       # and .png

One thread. Coverage: a sample of validation facts, asked both ways on the training graph, which
does not have them. Growth: a view, a question and a training query on random graphs whose degrees
follow a power law, with the same number of facts an entity. The last line printed is JSON.
"""

import argparse
import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from knowformer.data.dataset import Split, TrainingSplits
from knowformer.data.loading import load_dataset
from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.plots.palette import BLUE, GREY, ORANGE
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import generator
from knowformer.storage.atomic_files import atomic_path, write_text
from knowformer.system.allocator import keep_freed_memory
from knowformer.system.environment import describe_environment
from knowformer.training.loop import Trainer
from knowformer.training.settings_file import build_config
from knowformer.views.extractor import ViewExtractor
from knowformer.views.settings import ViewSettings

RESULTS = Path(__file__).parent / "results"
DATASETS = ["wn18rr", "fb15k-237", "nell-995"]
SIZES = [500, 1000, 2000, 4000, 8000]
ENTITIES = [10_000, 100_000, 1_000_000]
SIZE_OF_GROWTH = 2000
FACTS_PER_ENTITY = 5
NUM_RELATIONS = 20
POWER = 2.5  # of degrees: a share d ** -POWER of the entities has degree d
NEAR = 500
NUM_FACTS = 500  # asked both ways
BATCH_SIZE = 16
NUM_STEPS = 12
TIMED = {
    "milliseconds": ("a view", GREY),
    "question_milliseconds": ("a question", BLUE),
    "training_milliseconds": ("a training query", ORANGE),
}


def quartiles(values: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": middle, "first_quartile": low, "third_quartile": high}


def measure(graph: KnowledgeGraph, asked: Tensor, settings: ViewSettings) -> dict[str, Any]:
    """Extracts the views of facts' queries; says how many have their answer in them."""
    extractor = ViewExtractor(graph.adjacency, graph.entity_keys, settings)
    extractor.extract(asked[:1, 0], asked[:1, 1])
    milliseconds: list[float] = []
    covered = entities = edges = 0
    for batch in asked.split(BATCH_SIZE):
        before = time.perf_counter()
        views = extractor.extract(batch[:, 0], batch[:, 1])
        milliseconds.append(1e3 * (time.perf_counter() - before) / len(batch))
        covered += int(views.contains(torch.arange(len(batch)), batch[:, 2]).sum())
        entities += len(views.entities)
        edges += len(views.view.edges.sender)
    return {
        "size": settings.size,
        "coverage": covered / len(asked),
        "entities": entities / len(asked),
        "edges": edges / len(asked),
        "milliseconds": quartiles(milliseconds),
    }


def sample(facts: Tensor, num_relations: int) -> Tensor:
    """Some facts, asked both ways, in random order."""
    order = torch.randperm(len(facts), generator=generator(0, "views"))[:NUM_FACTS]
    asked = with_inverse_facts(facts[order], num_relations)
    return asked[torch.randperm(len(asked), generator=generator(1, "views"))]


def coverage(name: str, tolerances: list[float]) -> list[dict[str, Any]]:
    """Views of several sizes on one data set."""
    dataset = load_dataset(name)
    graph = dataset.train.graph
    asked = sample(dataset.valid.facts, len(graph.relations))
    cases: list[dict[str, Any]] = []
    for size in SIZES:
        for tolerance in tolerances:
            case = measure(graph, asked, ViewSettings(size=size, tolerance=tolerance))
            cases.append({"graph": name, "tolerance": tolerance, **case})
            show(f"{name}, tolerance {tolerance}", case)
    return cases


def power_law_graph(num_entities: int) -> KnowledgeGraph:
    """A ring of entities: half of their facts lead to near ones, half to any, by a power law."""
    draw = generator(0, "views", num_entities)
    size = (FACTS_PER_ENTITY * num_entities,)
    heads, relations, steps = (
        torch.randint(below, size, generator=draw) for below in (num_entities, NUM_RELATIONS, NEAR)
    )
    share = torch.rand(size, generator=draw, dtype=torch.float64)
    anyone = (num_entities * share ** ((POWER - 1) / (POWER - 2))).long()
    is_near = torch.rand(size, generator=draw) < 0.5
    tails = torch.where(is_near, (heads + steps) % num_entities, anyone)
    return KnowledgeGraph(
        Vocabulary((str(number) for number in range(num_entities)), kind="entity"),
        Vocabulary((str(number) for number in range(NUM_RELATIONS)), kind="relation"),
        torch.stack([heads, relations, tails], 1),
    )


def growth(num_entities: int) -> dict[str, Any]:
    """Views, questions and training queries of one view size on a graph of this size."""
    graph = power_law_graph(num_entities)
    asked = sample(graph.facts, NUM_RELATIONS)
    case = measure(graph, asked, ViewSettings(size=SIZE_OF_GROWTH))
    settings = [
        "threads=1",
        f"model.view_size={SIZE_OF_GROWTH}",
        f"training.batch_size={BATCH_SIZE}",
    ]
    split = Split("train", graph, graph.facts, graph.facts)
    valid = Split("valid", graph, graph.facts[:1], graph.facts)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            TrainingSplits(split, valid), build_config(assignments=settings), Path(folder)
        )
    scorer = Scorer(trainer.model, graph, seed=0, threads=1)
    questions = iter(asked.split(1))
    batches = trainer.epochs.batches(generator(0, "order"))

    def ask() -> int:
        question = next(questions)
        scorer.score(question[:, 0], question[:, 1])
        return 1

    def train() -> int:
        training_graph, batch = next(batches)
        trainer.step(trainer.see(training_graph, batch))
        return len(batch)

    case["question_milliseconds"] = repeat(ask, NUM_STEPS * 4)
    case["training_milliseconds"] = repeat(train, NUM_STEPS)
    show(f"{num_entities:,} entities", case)
    return {"graph_entities": num_entities, "graph_edges": graph.adjacency.num_edges, **case}


def repeat(work: Callable[[], int], times: int) -> dict[str, float]:
    """Milliseconds a query, after two rounds that are not timed."""
    milliseconds: list[float] = []
    for _ in range(times + 2):
        before = time.perf_counter()
        queries = work()
        milliseconds.append(1e3 * (time.perf_counter() - before) / queries)
    return quartiles(milliseconds[2:])


def draw(cases: list[dict[str, Any]], path: Path) -> None:
    """Time a query against the graph's size, one line for each kind of work."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axis = figure.subplots()
    entities = [case["graph_entities"] for case in cases]
    for key, (label, colour) in TIMED.items():
        times = [case[key]["median"] for case in cases]
        axis.plot(entities, times, "o-", color=colour)
        named = f"{label}, {times[-1] / times[0]:.2f} times"
        axis.annotate(named, (entities[-1], times[-1]), textcoords="offset points",
                      xytext=(0, 8), ha="right", color=colour, fontsize=9)  # fmt: skip
    axis.set(xscale="log", xlabel="entities of the graph", ylabel="milliseconds", ylim=(0, None))
    axis.set_title(f"views of {SIZE_OF_GROWTH:,} entities, one thread", loc="left", fontsize=11)
    axis.margins(y=0.15)
    axis.spines[["top", "right"]].set_visible(False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)


def show(what: str, case: dict[str, Any]) -> None:
    print(
        f"{what}: size {case['size']}, coverage {case['coverage']:.3f}, {case['entities']:.0f} "
        f"entities, {case['edges']:.0f} edges, "
        + ", ".join(
            f"{case[key]['median']:.2f} ms {label}"
            for key, (label, _) in TIMED.items()
            if key in case
        ),
        flush=True,
    )


def main() -> None:
    """Measures, prints, and stores if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the results")
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--entities", nargs="*", type=int, default=ENTITIES)
    parser.add_argument("--tolerances", nargs="*", type=float,
                        default=[ViewSettings(size=1).tolerance])  # fmt: skip
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    record: dict[str, Any] = {
        "command": ["python", "benchmarks/views.py"],
        "environment": describe_environment(),
        "facts": NUM_FACTS,
        "coverage": [
            case for name in arguments.datasets for case in coverage(name, arguments.tolerances)
        ],
        "growth": [growth(number) for number in arguments.entities],
    }
    if arguments.write:
        processor = record["environment"]["hardware"]["processor"].lower()
        name = re.sub(r"\W+", "-", processor).strip("-")
        target = RESULTS / f"views_{name}_{datetime.now(UTC):%Y-%m-%d}.json"
        write_text(target, json.dumps(record, indent=1) + "\n")
        draw(record["growth"], target.with_suffix(".png"))
    print(json.dumps({"coverage": record["coverage"], "growth": record["growth"]}))


if __name__ == "__main__":
    main()
