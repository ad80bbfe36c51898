"""Rows of an upload: the good ones become changes, the others are told one by one."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from knowformer import Reasoner
from knowformer.errors import ConfigError, DataError
from knowformer.live.facts import Change
from knowformer.live.snapshots import LiveGraph
from knowformer.live.upload import MAX_LISTED, RejectedRow, read_changes, upload


@pytest.fixture
def live(reasoner: Reasoner, tmp_path: Path) -> Iterator[LiveGraph]:
    with closing(LiveGraph.open(reasoner, tmp_path / "live.sqlite")) as opened:
        yield opened


ROWS = b"""\
place00\tnext\tguest
place00\tnext\tguest
place00\tnxt\tguest
place00\tnext

Rome\tis followed by\thost\r
\tnext\tguest
\xff\tnext\tguest
"""


def test_good_rows_are_stored_and_bad_ones_told_by_their_line(live: LiveGraph) -> None:
    planned = upload(live, ROWS, kind="tsv", dry_run=True)
    assert (live.snapshot().version, planned.version, planned.first_id) == (0, 0, None)
    done = upload(live, ROWS, kind="tsv", author="Ann", key="k")
    for result in (planned, done):
        assert (result.accepted, result.unchanged, result.num_rejected) == (2, 1, 4)
        assert result.new_entities == 2
        assert [row.row for row in result.rejected] == [3, 4, 7, 8]
    assert [row.message.partition(",")[0] for row in done.rejected] == [
        "Expected one of 2 relation names or their readable names",
        "Expected 3 columns",
        "Expected a name as head",
        "Expected UTF-8 text",
    ]
    assert (done.first_id, done.last_id, done.version) == (1, 2, 2)
    newest, _ = live.changes().items
    assert (newest.fact, newest.author) == (("place03", "next", "host"), "Ann")
    assert upload(live, ROWS, kind="tsv", author="Ann", key="k").version == 2


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("tsv", '\ufeffTail\tnoted\tHead\trelation\twhy\na"b\tx\tc,d\tr\tseen\n'),
        ("csv", 'head,relation,tail,why\r\n"c,d",r,"a""b",seen\r\n'),
        ("jsonl", '\n{"head": "c,d", "relation": "r", "tail": "a\\"b", "why": "seen", "x": 1}'),
    ],
)
def test_the_formats_say_the_same(kind: str, content: str) -> None:
    (row,) = read_changes(content.encode(), kind)  # pyright: ignore
    assert row == (2, Change("c,d", "r", 'a"b', why="seen"))


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("jsonl", "[1]", "Expected a JSON object, got list"),
        ("jsonl", "[" * 100_000, "Expected a JSON object, got: "),
        ("jsonl", '{"head": 1, "relation": "r", "tail": "b"}', "Expected text as head, got 1"),
        ("csv", "a" * 200_000, "Expected a row of a CSV file, got: field larger"),
    ],
)
def test_rows_that_are_none_are_told(kind: str, content: str, message: str) -> None:
    (row,) = read_changes(content.encode(), kind)  # pyright: ignore
    assert isinstance(row, RejectedRow)
    assert row.message.startswith(message)


def test_what_holds_no_rows_is_refused_and_long_lists_are_cut(live: LiveGraph) -> None:
    with pytest.raises(DataError, match="Expected rows of head, relation and tail, got none"):
        upload(live, b"\n\n", kind="csv")
    with pytest.raises(ConfigError, match="Expected tsv, csv, jsonl as format, got 'xml'"):
        upload(live, b"", kind="xml")  # pyright: ignore
    result = upload(live, b"a\tunheard of\tb\n" * (MAX_LISTED + 5), kind="tsv")
    assert (result.num_rejected, len(result.rejected)) == (MAX_LISTED + 5, MAX_LISTED)
    assert (result.accepted, result.version) == (0, 0)
