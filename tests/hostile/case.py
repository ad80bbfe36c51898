"""A case of the corpus: something odd in a folder, a command, and what it may never do."""

import contextlib
import io
import logging
import os
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

GOOD_CODES = (0, 2)  # done, or refused
RESULTS = ("answers.tsv", "answers.tsv.rejected")  # written beside questions that are refused
LONGEST_LINE = 4000
SECONDS = 60  # of processor time: more is a hang


@dataclass(frozen=True)
class Place:
    """Where a case happens: a folder of its own, beside one that no command may touch."""

    folder: Path
    outside: Path
    template: Path
    """A whole run; copied by cases that damage one."""
    facts: Path
    """A triples file."""

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def copy_run(self) -> Path:
        return Path(shutil.copytree(self.template, self.run))


@dataclass(frozen=True)
class Case:
    """One row of a table."""

    name: str
    prepare: Callable[[Place], list[Any]]
    """Fills the folder and returns what is typed after ``knowformer``."""


@contextlib.contextmanager
def place_in(root: Path, template: Path, facts: Path) -> Iterator[Place]:
    """Makes the folders of a case, and removes them."""
    folder, outside = root / "inside", root / "outside"
    folder.mkdir(parents=True)
    outside.mkdir()
    (outside / "precious").write_text("precious\n")
    try:
        yield Place(folder, outside, template, facts)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def faults_of(case: Case, place: Place) -> list[str]:
    """Runs a case in this process and returns what is wrong with how it went; nothing is good."""
    typed = [str(argument) for argument in case.prepare(place)]
    inside, outside = state_of(place.folder), state_of(place.outside)
    code, printed, said, escaped = run_command(typed, place.folder)
    faults: list[str] = []
    if escaped is not None:
        faults.append(f"traceback: {type(escaped).__name__}: {str(escaped)[:200]}")
    elif code not in GOOD_CODES:
        faults.append(f"code {code}: {said[-300:]}")
    if "Traceback" in said:
        faults.append("traceback printed")
    if any(len(line) > LONGEST_LINE for line in said.splitlines()):
        faults.append("long message")
    if any(ord(character) < 32 and character not in "\n\t" for character in printed + said):
        faults.append("control characters printed")
    if state_of(place.outside) != outside:
        faults.append("outside write")
    left = {path: state for path, state in state_of(place.folder).items() if path not in RESULTS}
    if code == 2 and left != inside:
        faults.append("leftover")
    return faults


def run_command(typed: list[str], folder: Path) -> tuple[int, str, str, BaseException | None]:
    """Returns exit code, both outputs, and an exception that is none of ours."""
    # Imported here: the same corpus judges other versions, which have other modules.
    from knowformer.interfaces import cli

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace") for _ in "12")
    logger = logging.getLogger("knowformer")
    handlers, level = list(logger.handlers), logger.level
    escaped: BaseException | None = None
    code = 0
    try:
        with (
            patch.multiple(sys, argv=["knowformer", *typed], stdout=out, stderr=err),
            patch("knowformer.interfaces.entry.keep_freed_memory"),
            contextlib.chdir(folder),
            limited(),
        ):
            before = signal.getsignal(signal.SIGINT)
            try:
                cli.main()
            finally:
                signal.signal(signal.SIGINT, before)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException as error:  # noqa: BLE001 - this is what the corpus looks for
        escaped = error
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)
    return code, read_back(out), read_back(err), escaped


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raises where a case takes far too long."""

    def give_up(*_: Any) -> None:
        raise TimeoutError("hang")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def read_back(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def state_of(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every file below a folder, with what changes when it is written."""
    state: dict[str, tuple[int, ...]] = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root, name)
            found = path.lstat()
            written = (0, 0) if stat.S_ISDIR(found.st_mode) else (found.st_size, found.st_mtime_ns)
            state[str(path.relative_to(folder))] = (found.st_ino, *written)
    return state
