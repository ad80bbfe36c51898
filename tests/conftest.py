"""Shared by all tests: tensor shapes checked at run time, one thread, small graphs."""

import importlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import settings

# Before knowformer is imported: its consoles look once at what would change their output.
for variable in ("COLUMNS", "FORCE_COLOR"):
    os.environ.pop(variable, None)

# Before knowformer is imported: every annotated shape is checked on every call, in the tests of
# single modules. Kernels compiled by numba must not be wrapped, so of the kernels only the torch
# files are named; what these hand to a compiled kernel is checked against its table of arguments.
CHECKED = [
    "knowformer.graph",
    "knowformer.data.dataset",
    "knowformer.data.loading",
    "knowformer.data.holdout",
    "knowformer.data.splitting",
    "knowformer.queries",
    "knowformer.kernels.interface",
    "knowformer.kernels._operands",
    "knowformer.kernels._attention",
    "knowformer.kernels._reference",
    "knowformer.kernels._cpu",
    "knowformer.views.extractor",
    "knowformer.views.queries",
    "knowformer.views.views",
    "knowformer.model",
    "knowformer.scoring",
    "knowformer.calibration",
    "knowformer.evaluation",
    "knowformer.training",
    "knowformer.explanation",
    "knowformer.runs",
    "knowformer.answering",
    "knowformer.reasoner",
    "knowformer.pipeline",
]
jaxtyping.install_import_hook(CHECKED, "beartype.beartype")

# Elsewhere whole runs are compared: the same calls come again thousands of times, and checking
# them would take longer than they do.
CHECKED_IN = (Path("tests/unit"), Path("tests/contracts"))

from knowformer.data.dataset import Dataset  # noqa: E402
from knowformer.data.loading import load_dataset  # noqa: E402
from knowformer.graph.knowledge_graph import KnowledgeGraph  # noqa: E402
from knowformer.graph.vocabulary import Vocabulary  # noqa: E402
from knowformer.storage.triples_io import NamedTriple  # noqa: E402

settings.register_profile("knowformer", deadline=None, max_examples=15, database=None)
settings.load_profile("knowformer")

FAMILY: list[NamedTriple] = [
    ("ann", "mother_of", "bob"),
    ("ann", "mother_of", "cid"),
    ("dan", "father_of", "bob"),
    ("dan", "father_of", "cid"),
    ("ann", "married_to", "dan"),
    ("bob", "brother_of", "cid"),
    ("cid", "brother_of", "bob"),
    ("eve", "mother_of", "ann"),
]


@pytest.hookimpl(tryfirst=True)  # before the test's fixtures
def pytest_runtest_setup(item: pytest.Item) -> None:
    path = item.path.relative_to(Path(__file__).parents[1])
    is_checked = any(path.is_relative_to(folder) for folder in CHECKED_IN)
    jaxtyping.config.update("jaxtyping_disable", not is_checked)


@pytest.fixture(scope="session", autouse=True)
def checked_kernels() -> None:
    """Every call of a compiled kernel is checked: it gets addresses, and believes their sizes."""
    if find_spec("numba") is not None:
        importlib.import_module("knowformer.kernels._cpu_compile").Kernel.is_checked = True


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Workers share few cores; a test that sets another number of threads leaves none behind."""
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def default_interrupt() -> Iterator[None]:
    """Ctrl-C as a process finds it that was started at a terminal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def family() -> KnowledgeGraph:
    """Five people; ``zoe`` has no facts."""
    return KnowledgeGraph.from_triples(FAMILY, more_entities=["zoe"])


@pytest.fixture(scope="session")
def random_graph() -> Callable[..., KnowledgeGraph]:
    """A function: the same arguments give the same graph; self-loops and isolated ones occur."""

    def build(
        seed: int = 0, *, num_entities: int = 12, num_relations: int = 3, num_facts: int = 30
    ) -> KnowledgeGraph:
        draw = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations, num_entities)
        columns = [torch.randint(size, (num_facts,), generator=draw) for size in sizes]
        return KnowledgeGraph(
            Vocabulary([f"e{number}" for number in range(num_entities)], kind="entity"),
            Vocabulary([f"r{number}" for number in range(num_relations)], kind="relation"),
            torch.unique(torch.stack(columns, 1), dim=0),
        )

    return build


@pytest.fixture(scope="session")
def write_triples() -> Callable[[Path, Sequence[NamedTriple]], Path]:
    """A function that writes triples as a TSV file, making its folder."""

    def write(path: Path, triples: Sequence[NamedTriple]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(triple) + "\n" for triple in triples), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def ring_triples() -> list[NamedTriple]:
    """Sixteen places in a ring: ``next`` holds, and ``skip`` follows from two steps of it."""
    names = [f"place{number:02d}" for number in range(16)]
    ring = [(names[i], "next", names[(i + 1) % 16]) for i in range(16)]
    return ring + [(names[i], "skip", names[(i + 2) % 16]) for i in range(16)]


@pytest.fixture(scope="session")
def ring(
    tmp_path_factory: pytest.TempPathFactory,
    ring_triples: list[NamedTriple],
    write_triples: Callable[[Path, Sequence[NamedTriple]], Path],
) -> Dataset:
    """A data set that a tiny model learns in moments."""
    return load_dataset(write_triples(tmp_path_factory.mktemp("ring") / "ring.tsv", ring_triples))
