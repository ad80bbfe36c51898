"""A store whose process is killed, and one whose disk is full."""

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from knowformer.errors import StorageError
from knowformer.live.facts import Change
from knowformer.live.snapshots import LiveGraph
from tests.integration.kill_writers import build_reasoner
from tests.integration.test_disk_full import mount

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_what_was_acknowledged_survives_kill_9_and_nothing_is_half_there():
    killing = [sys.executable, "-m", "tests.integration.kill_writers"]
    done = subprocess.run(
        [*killing, "--kills", "6", "--seconds", "0.6"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    counts = json.loads(done.stdout)
    assert counts["kills"] == 6
    assert counts["acknowledged"] > 0
    assert counts["milliseconds_to_open"] < 10_000


def fill(live: LiveGraph) -> int:
    """Adds facts until there is no room; returns how many requests were made."""
    said, number, before = "", 0, live.snapshot()
    while not said:
        before = live.snapshot()
        change = Change(f"new{number}", "next", "e0", why="x" * 5000)
        try:
            live.change([change, Change("e0", "next", change.head)], key=f"{number}")
            number += 1
        except StorageError as error:
            said = str(error)
    assert "Free some space or choose another" in said
    assert live.snapshot() is before
    return number


def test_a_full_disk_refuses_changes_whole_and_takes_them_once_there_is_room(tmp_path: Path):
    """SQLite's own limit stands in for a full disk anywhere; see below for a real one."""
    with closing(LiveGraph.open(build_reasoner(), tmp_path / "live.sqlite")) as live:
        with live._database.transaction() as connection:
            connection.execute("PRAGMA max_page_count = 40")
        number = fill(live)
        assert live.snapshot().version == 2 * number > 0
        assert len(live.changes(limit=1000).items) == 2 * number
        with live._database.transaction() as connection:
            connection.execute("PRAGMA max_page_count = 4000")
        changes = [Change(f"new{number}", "next", "e0", why="x" * 5000)]
        assert live.change(changes, key=f"{number}").version == 2 * number + 1


def test_a_disk_that_is_really_full_loses_nothing(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", disk)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    reasoner, path = build_reasoner(), disk / "live.sqlite"
    try:
        with closing(LiveGraph.open(reasoner, path)) as live:
            number = fill(live)
            assert mount("-o", "remount,size=64m", disk).returncode == 0
            assert live.change([Change("late", "next", "e0")]).version == 2 * number + 1
        with closing(LiveGraph.open(reasoner, path)) as live:
            assert live.snapshot().added == 2 * number + 1
    finally:
        subprocess.run(["umount", disk], check=True)
