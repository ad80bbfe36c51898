"""The command as a user types it, small graphs, and runs trained once per session."""

import contextlib
import fcntl
import hashlib
import io
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from knowformer.interfaces import cli, entry
from knowformer.system import interrupts

COMMAND = Path(sys.executable).with_name("knowformer")

# Small enough that a training takes less time than starting the command.
TINY = [
    *("--set", "model.hidden_dim=16", "--set", "model.num_heads=4", "--set", "model.num_layers=1"),
    *("--set", "model.num_query_key_hops=1", "--set", "model.num_value_hops=2"),
    *("--set", "training.max_epochs=1", "--threads", "1"),
]

Finished = subprocess.CompletedProcess[str]


def environment(cache: Path) -> dict[str, str]:
    """The caller's environment without what would change output, threads or data."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"KNOWFORMER_DATA", "PYTHONWARNINGS"}
    }
    quiet = {"NO_COLOR": "1", "TERM": "dumb", "OMP_NUM_THREADS": "1"}
    return kept | quiet | {"KNOWFORMER_CACHE": str(cache), "MPLBACKEND": "agg"}


@pytest.fixture(scope="session")
def command_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def command(command_environment: dict[str, str]) -> Callable[..., Finished]:
    """Runs ``knowformer ARGUMENTS`` and returns what it printed: in this process.

    All that ``main`` does is done, without the seconds in which a process of its own loads torch.
    """

    def run(*arguments: str | Path, cwd: Path | None = None, encoding: str = "utf-8") -> Finished:
        typed = [str(COMMAND), *map(str, arguments)]
        out = io.TextIOWrapper(io.BytesIO(), encoding)
        err = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace")
        with (
            patch.dict(os.environ, command_environment, clear=True),
            patch.multiple(sys, argv=typed, stdout=out, stderr=err),
            patch.object(entry, "keep_freed_memory"),  # it would, for the tests to come
            patch.object(interrupts, "ending_at_once", contextlib.nullcontext),
            log_as_it_was(),
            contextlib.chdir(cwd or Path.cwd()),
            pytest.raises(SystemExit) as ended,
        ):
            cli.main()
        return Finished(typed, ended.value.code or 0, read_back(out), read_back(err))

    return run


@contextlib.contextmanager
def log_as_it_was() -> Iterator[None]:
    """Leaves the log of the library to the tests to come as it was before a command."""
    logger = logging.getLogger("knowformer")
    handlers, level = list(logger.handlers), logger.level
    try:
        yield
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def read_back(stream: io.TextIOWrapper) -> str:
    """Returns all that was written to a stream."""
    stream.seek(0)
    return stream.read()


@pytest.fixture(scope="session")
def installed(command_environment: dict[str, str]) -> Callable[..., Finished]:
    """The same as ``command``, in a process of its own."""

    def run(
        *arguments: str | Path, variables: Mapping[str, str] | None = None, **options: Any
    ) -> Finished:
        # Bytecode that a limit on files cuts short would break every later import.
        is_limited = {"PYTHONDONTWRITEBYTECODE": "1"} if "preexec_fn" in options else {}
        return subprocess.run(
            [COMMAND, *map(str, arguments)],
            env=command_environment | is_limited | dict(variables or {}),
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            **options,
        )

    return run


@pytest.fixture(scope="session")
def start(command_environment: dict[str, str]) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts ``knowformer ARGUMENTS`` and returns at once; the test ends the process."""

    def run(*arguments: str | Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [COMMAND, *map(str, arguments)],
            env=command_environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    return run


@pytest.fixture(scope="session")
def succeed(command: Callable[..., Finished]) -> Callable[..., str]:
    """Runs a command that must end well, without a warning, and returns its standard output."""

    def run(*arguments: str | Path, by: Callable[..., Finished] = command, **options: Any) -> str:
        done = by(*arguments, **options)
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def read_json(succeed: Callable[..., str]) -> Callable[..., Any]:
    """Runs a command with ``--json`` and returns what it printed, read strictly."""

    def run(*arguments: str | Path, **options: Any) -> Any:
        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        printed = succeed(*arguments, "--json", **options)
        return json.loads(printed, parse_constant=refuse)

    return run


@pytest.fixture
def refuse(command: Callable[..., Finished], tmp_path: Path) -> Callable[..., str]:
    """Runs a command that must refuse its input, and returns its one sentence.

    Exit code 2, one line of error, nothing on standard output, and ``tmp_path`` (every file that
    the command may touch) exactly as it was.
    """

    def run(*arguments: str | Path, by: Callable[..., Finished] = command, **options: Any) -> str:
        before = snapshot(tmp_path)
        done = by(*arguments, **options)
        assert done.returncode == 2, (done.stdout, done.stderr)
        assert done.stdout == ""
        assert is_one_sentence(done.stderr), done.stderr
        assert snapshot(tmp_path) == before
        return done.stderr.strip()

    return run


def is_one_sentence(stderr: str) -> bool:
    """One line that starts with ``error:`` and ends as a sentence does."""
    line = stderr.removesuffix("\n")
    return line.startswith("error: ") and "\n" not in line and line.endswith((".", "?"))


def snapshot(folder: Path) -> dict[str, str]:
    """Every file and folder below ``folder``, with a checksum of its content."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        )
        for path in sorted(folder.rglob("*"))
    }


def family_triples(prefix: str, num_families: int) -> list[str]:
    """Lines about families of two parents and two children, linked by marriages."""
    lines: list[str] = []
    for number in range(num_families):
        one, two, first, second = (f"{prefix}{number}_{who}" for who in ("ann", "bob", "cy", "di"))
        next_first = f"{prefix}{(number + 1) % num_families}_cy"
        lines += [f"{one}\tmarried_to\t{two}", f"{second}\tmarried_to\t{next_first}"]
        lines += [
            f"{parent}\tparent_of\t{child}" for parent in (one, two) for child in (first, second)
        ]
        lines += [f"{first}\tsibling_of\t{second}", f"{second}\tsibling_of\t{first}"]
    return lines


def write_lines(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Returns a folder made by ``make``, once for all workers of pytest-xdist."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, made = root / name, root / f"{name}.made"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            made.touch()
    return folder


@pytest.fixture(scope="session")
def family_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A triples file of one's own: 8 families, 64 facts."""
    return write_lines(tmp_path_factory.mktemp("family") / "family.tsv", family_triples("f", 8))


@pytest.fixture(scope="session")
def unseen_family_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same relations among entities that share no name with ``family_file``."""
    return write_lines(tmp_path_factory.mktemp("unseen") / "unseen.tsv", family_triples("u", 6))


@pytest.fixture(scope="session")
def family_run(
    tmp_path_factory: pytest.TempPathFactory, family_file: Path, succeed: Callable[..., str]
) -> Path:
    """A run trained on ``family_file``. Shared: copy it before changing it."""

    def make(folder: Path) -> None:
        succeed("train", family_file, "--out", folder / "run", *TINY)

    return make_once(tmp_path_factory, "family_run", make) / "run"


@pytest.fixture(scope="session")
def nations_run(
    tmp_path_factory: pytest.TempPathFactory,
    read_json: Callable[..., Any],
    installed: Callable[..., Finished],
) -> Path:
    """A run on the embedded graph; ``printed.json`` beside it is what ``train --json`` printed."""

    def make(folder: Path) -> None:
        # Many queries: in a process of its own no shape is checked, and it is done sooner.
        how = [*TINY, "--set", "training.batch_size=64", "--seed", "5"]
        printed = read_json("train", "nations", "--out", folder / "run", *how, by=installed)
        (folder / "printed.json").write_text(json.dumps(printed), "utf-8")

    return make_once(tmp_path_factory, "nations_run", make) / "run"


@pytest.fixture(scope="session")
def village_run(tmp_path_factory: pytest.TempPathFactory, succeed: Callable[..., str]) -> Path:
    """A run of few relations, so that fitting and judging its probabilities takes moments."""

    def make(folder: Path) -> None:
        graph = write_lines(folder / "village.tsv", family_triples("v", 24))
        faster = ["--set", "training.batch_size=64", "--seed", "5"]
        succeed("train", graph, "--out", folder / "run", *TINY, *faster)

    return make_once(tmp_path_factory, "village_run", make) / "run"


@pytest.fixture
def own_family_run(family_run: Path, tmp_path: Path) -> Path:
    """A copy of ``family_run`` that a test may break."""
    return Path(shutil.copytree(family_run, tmp_path / "family"))


@pytest.fixture(scope="session")
def tiny() -> list[str]:
    """Settings of a model and a training that take no time."""
    return TINY
