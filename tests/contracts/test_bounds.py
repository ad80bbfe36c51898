"""No compiled code reads or writes beyond its arrays."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("numba")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path} | variables,
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mprotect")
def test_kernels_stay_between_fences() -> None:
    done = run("-m", "tests.contracts.fenced")
    assert done.returncode == 0, done.stderr
    # They are high enough: what is out of bounds does not come back.
    assert run("-m", "tests.contracts.fenced", "broken").returncode == -signal.SIGSEGV


VIEWS = """
import numpy as np, torch
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.views.cpu import CompiledExtraction
from knowformer.views.queries import Query
from knowformer.views.settings import Rules, ViewSettings
from tests.unit.views.asking import ranks_of
from tests.unit.views.test_cpu import check

def graph(seed, entities, facts):
    draw = torch.Generator().manual_seed(seed)
    columns = [torch.randint(size, (facts,), generator=draw) for size in (entities, 3, entities)]
    names = [f"e{number}" for number in range(entities)]
    relations = Vocabulary(["r0", "r1", "r2"], kind="relation")
    facts = torch.unique(torch.stack(columns, 1), dim=0)
    return KnowledgeGraph(Vocabulary(names, kind="entity"), relations, facts)

for seed in range(6):
    for hide in (None, "facts", "links"):
        check(graph(seed, 2 + 5 * seed, 1 + 20 * seed), ViewSettings(size=1 + 3 * seed), seed, hide)
small = graph(0, 9, 20)
rules = Rules.of(ViewSettings(size=3))
extraction = CompiledExtraction(
    small.adjacency, ranks_of(small), rules, lambda f, items: list(map(f, items))
)
try:
    extraction.extract([Query(10**6, 0, 3, False, np.empty(0, dtype=np.int64))], outside=True)
except IndexError:
    print("refused")
"""


def test_views_are_extracted_within_bounds() -> None:
    """The same functions, run by Python: arrays of numpy check every index."""
    done = run("-W", "ignore", "-c", VIEWS, NUMBA_DISABLE_JIT="1")
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
