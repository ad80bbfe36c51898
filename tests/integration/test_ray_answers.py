"""Folders of answers on a real Ray: the same bytes as without it, whatever is killed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., subprocess.Popen[bytes]]
HAS_RAY = pytest.mark.skipif(
    find_spec("ray") is None, reason="ray is not installed: pip install 'knowformer[ray]'"
)
SHARD_ROWS = 64


@pytest.fixture
def asked(nations_run: Path, tmp_path: Path) -> list[str | Path]:
    """A command without ``--out`` and the engine: 2,304 questions, four of them bad."""
    entities = ["usa", "uk", "cuba", "china", "egypt", "india", "brazil", "poland"]
    relations = ["embassy", "treaties", "exports3", "tourism3", "ngo", "students"]
    lines = [f"{h}\t{r}\t?" for h in entities for r in relations] * 48
    lines[7] = lines[700] = "usaa\tembassy\t?"
    lines[8] = lines[2000] = "no question"
    queries = tmp_path / "q.tsv"
    queries.write_text("\n".join(lines) + "\n", "utf-8")
    size = ["--shard-rows", str(SHARD_ROWS)]
    return ["answer", nations_run, "--queries", queries, "-k", "3", "--threads", "1", *size]


def content(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def workers_of(folder: Path) -> set[int]:
    """Returns the ids of the processes of Ray that answer shards into a folder."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            name = (path / "cmdline").read_bytes()
            environment = (path / "environ").read_bytes()
        except OSError:
            continue
        if b"ShardWorker" in name and str(folder).encode() in environment:
            found.add(int(path.name))
    return found


@pytest.fixture
def on_ray(
    asked: list[str | Path],
    command_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    start: Start,
) -> Iterator[Callable[[Path], subprocess.Popen[bytes]]]:
    """Starts the command with a Ray of its own; the process is known by a variable."""
    started: list[subprocess.Popen[bytes]] = []
    # Else Ray writes a token to the user's home.
    monkeypatch.setitem(command_environment, "RAY_AUTH_MODE", "disabled")

    def run(out: Path) -> subprocess.Popen[bytes]:
        monkeypatch.setitem(command_environment, "TEST_FOLDER", str(out))
        process = start(*asked, "--out", out, "--engine", "ray", "--workers", "2")
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def wait_for(happened: Callable[[], Any], process: subprocess.Popen[bytes]) -> Any:
    """Waits until it happens and returns what it returned; the command must not end before."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        found = happened()
        if found:
            return found
        assert process.poll() is None, "the command ended before"
        time.sleep(0.02)
    raise AssertionError("nothing happened")


@HAS_RAY
@pytest.mark.slow
def test_killed_workers_and_a_killed_driver_leave_nothing_out_and_nothing_twice(
    asked: list[str | Path],
    command: Callable[..., Any],
    on_ray: Callable[[Path], subprocess.Popen[bytes]],
    tmp_path: Path,
):
    quiet, out = tmp_path / "quiet", tmp_path / "out"
    assert command(*asked, "--out", quiet).returncode == 2  # bad rows, which are listed

    def receipts() -> set[str]:
        return {path.name for path in (out / "receipts").glob("0*.json")}

    process = on_ray(out)
    for wanted in (1, 6):  # a worker dies, and then another one, or the one in its place
        wait_for(lambda wanted=wanted: len(receipts()) >= wanted, process)
        victim = wait_for(lambda: workers_of(out), process).pop()
        os.kill(victim, signal.SIGKILL)
    before = len(receipts())
    wait_for(lambda: len(receipts()) > before, process)
    process.kill()  # the driver
    process.wait()
    done = {name: (out / "receipts" / name).stat().st_mtime_ns for name in receipts()}
    assert not (out / "summary.json").exists()

    # In this process: what was begun on Ray goes on without it.
    ended = command(*asked, "--out", out, "--json")
    assert ended.returncode == 2
    assert json.loads(ended.stdout)["resumed"] >= SHARD_ROWS * len(done)
    kept = {name: (out / "receipts" / name).stat().st_mtime_ns for name in done}
    assert kept == done  # not made again
    assert content(out) == content(quiet)
    lines = [
        json.loads(line)["line"]
        for shard in sorted(out.glob("answers-*.jsonl"))
        for line in shard.read_text("utf-8").splitlines()
    ]
    assert lines == [n for n in range(1, 2305) if n not in {8, 9, 701, 2001}]


@HAS_RAY
@pytest.mark.slow
def test_what_was_begun_here_goes_on_on_ray(
    asked: list[str | Path],
    command: Callable[..., Any],
    on_ray: Callable[[Path], subprocess.Popen[bytes]],
    tmp_path: Path,
):
    quiet, out = tmp_path / "quiet", tmp_path / "out"
    for folder in (quiet, out):
        command(*asked, "--out", folder)
    for number in (3, 30):
        (out / "receipts" / f"{number:08d}.json").unlink()
    (out / "answers-00000030.jsonl").unlink()
    assert on_ray(out).wait(240) == 2
    assert content(out) == content(quiet)


REFUSED = {
    "a file": (["--out", "out.tsv", "--engine", "ray"], "a name without an ending, got 'out.tsv'"),
    "an address alone": (["--out", "out", "--address", "auto"], "--engine ray with --address"),
    "workers alone": (["--out", "out", "--workers", "2"], "--engine ray with --workers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_ray_cannot_do_is_refused(
    case: str, nations_run: Path, refuse: Callable[..., str], tmp_path: Path
):
    (tmp_path / "q.tsv").write_text("usa\tembassy\t?\n", "utf-8")
    arguments, says = REFUSED[case]
    said = refuse("answer", nations_run, "--queries", tmp_path / "q.tsv", *arguments, cwd=tmp_path)
    assert says in said


def test_without_the_extra_a_sentence_says_what_to_install(
    nations_run: Path, refuse: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from knowformer import errors

    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    asked = ["--queries", tmp_path / "q.tsv", "--out", tmp_path / "out", "--engine", "ray"]
    said = refuse("answer", nations_run, *asked)
    assert "Install it with pip install 'knowformer[ray]'" in said
