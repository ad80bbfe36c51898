"""``knowformer serve`` as it is typed, in a process of its own, on a run of one's own."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.conftest import COMMAND, TINY, environment, family_triples, write_lines


@pytest.fixture(scope="session")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> Path:
    """A run on a few families; shared, so copy it before serving it."""
    folder = tmp_path_factory.mktemp("trained")
    graph = write_lines(folder / "family.tsv", family_triples("f", 8))
    typed = [COMMAND, "train", graph, "--out", folder / "run", *TINY, "--quiet"]
    subprocess.run(typed, env=variables, check=True, timeout=300, stdout=subprocess.DEVNULL)
    return folder / "run"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


class Served:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.client = httpx.Client(base_url=address, timeout=60, trust_env=False)


Serve = Callable[..., Served]


@pytest.fixture
def serve(variables: dict[str, str]) -> Iterator[Serve]:
    """Starts ``knowformer serve``; what still runs after the test is killed."""
    started: list[Served] = []

    def start(run: Path, *options: str | Path) -> Served:
        process = subprocess.Popen(
            [COMMAND, "serve", run, "--port", "0", "--threads", "1", *options],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.fullmatch(r"Open (http://\S+/) \(stop with Ctrl-C\)\n", line)
        assert address, line
        started.append(Served(process, address[1]))
        return started[-1]

    yield start
    for served in started:
        served.client.close()
        with ended(served.process):
            served.process.kill()


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Waits for the end of a process, and closes what it printed to."""
    yield
    process.wait(60)
    assert process.stdout is not None
    process.stdout.close()
