"""Kernels on machines that are less kind: no folder to keep them in, no Numba at all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from knowformer.kernels.interface import ScoreWeights, select_backend

PACKAGE = Path(__file__).parents[2] / "src" / "knowformer"

HOP = """
import logging, torch
logging.basicConfig(level=logging.INFO, format="%(message)s")
from knowformer.kernels.interface import ScoreWeights, select_backend
backend = select_backend("auto")
weights = ScoreWeights(torch.zeros(2, 16), torch.zeros(1, 16, 16), torch.ones(1))
scores = backend.score(torch.zeros(3, 16), weights)
print(type(backend).__name__, scores.tolist())
"""

VIEW = """
import logging, torch
logging.basicConfig(level=logging.INFO, format="%(message)s")
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views.extractor import ViewExtractor
from knowformer.views.settings import ViewSettings
graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c"), ("c", "s", "d")])
extractor = ViewExtractor(graph.adjacency, graph.entity_keys, ViewSettings(size=3))
zero = torch.zeros(1, dtype=torch.long)
print("sees", extractor.extract(zero, zero).entities.tolist())
"""

# The smallest of its functions: all are compiled in the same way, in a quarter of a minute.
VIEW_FUNCTION = """
from knowformer.views.cpu import _Compiled
print("double", _Compiled(lambda number: 2 * number)(21))
"""


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "folder", "result"),
    [
        pytest.param(HOP, "kernels", "CpuBackend [1.0, 1.0, 1.0]", id="hop"),
        pytest.param(VIEW_FUNCTION, "views", "double 42", id="view"),
    ],
)
def test_kernels_run_where_nothing_can_be_cached(
    tmp_path: Path, code: str, folder: str, result: str
) -> None:
    """An installation and a home that may be read alone, as on a shared machine."""
    copy = tmp_path / "lib" / "knowformer"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    # A file where the cache's folder would be: it cannot be made, not even by root.
    (copy / folder / "__pycache__").write_text("")
    blocked = tmp_path / "home"
    blocked.write_text("")
    said = run(
        code,
        PYTHONPATH=str(tmp_path / "lib"),
        PYTHONDONTWRITEBYTECODE="1",
        HOME=str(blocked),
        XDG_CACHE_HOME=str(blocked / "cache"),
        NUMBA_CACHE_DIR="",
    )
    assert result in said


@pytest.mark.parametrize(
    ("code", "result"),
    [(HOP, "ReferenceBackend [1.0, 1.0, 1.0]"), (VIEW, "sees [0, 1, 2]")],
    ids=["hop", "view"],
)
def test_without_numba_the_reference_runs_and_says_so(code: str, result: str) -> None:
    hide = "import sys; sys.modules['numba'] = None\n"
    hide += "import importlib.util as u; find = u.find_spec\n"
    hide += "u.find_spec = lambda name, *rest: None if name == 'numba' else find(name, *rest)\n"
    said = run(hide + code)
    assert result in said
    assert "Numba is not installed" in said


@pytest.mark.parametrize("width", [8, 24, 48, 128])
def test_other_widths_run_on_the_reference(width: int) -> None:
    weights = ScoreWeights(torch.zeros(2, width), torch.zeros(1, width, width), torch.ones(1))
    scores = select_backend("auto").score(torch.zeros(3, width), weights)
    assert scores.tolist() == [1.0, 1.0, 1.0]
