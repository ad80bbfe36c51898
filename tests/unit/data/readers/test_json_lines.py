import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from knowformer.data.readers.columns import Dialect
from knowformer.data.readers.json_lines import LINES_PER_CHUNK, read_json_lines
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows
from knowformer.errors import DataError


def write(path: Path, *objects: Any) -> Path:
    text = "".join(json.dumps(content) + "\n" for content in objects)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def rows(path: Path, reading: Reading | None = None) -> list[tuple[str, ...]]:
    chunks = read_json_lines(path, reading or Reading())
    return [row for chunk in chunks for row in zip(*chunk.columns, strict=True)]


@pytest.mark.parametrize("name", ["f.jsonl", "f.jsonl.gz"])
def test_objects_are_rows_whatever_the_order_of_their_keys(tmp_path: Path, name: str) -> None:
    first = {"head": "ann", "relation": "knows", "tail": 7, "more": None}
    second = {"tail": "cäd", "head": "bob", "relation": "knows"}
    reading = Reading()
    path = write(tmp_path / name, first, second)
    assert rows(path, reading) == [("ann", "knows", "7"), ("bob", "knows", "cäd")]
    assert reading.notes == [f"{path}: head = head, relation = relation, tail = tail."]


def test_keys_are_chosen_by_option_and_a_time_follows(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"who": "a", "does": "r", "whom": "b", "when": 2.5})
    dialect = Dialect(columns=("who", "does", "whom"), time="when")
    assert rows(path, Reading(dialect)) == [("a", "r", "b", "2.5")]


def test_many_lines_come_in_several_chunks_with_their_numbers(tmp_path: Path) -> None:
    facts = [{"head": f"h{i}", "relation": "r", "tail": "t"} for i in range(LINES_PER_CHUNK + 2)]
    read = []
    path = write(tmp_path / "f.jsonl", *facts)
    chunks = list(read_json_lines(path, Reading(progress=read.append)))
    assert [len(chunk.numbers) for chunk in chunks] == [LINES_PER_CHUNK, 2]
    assert chunks[1].place(1) == f"{path}:{LINES_PER_CHUNK + 2}"
    assert read[-1] == path.stat().st_size


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "Expected a JSON object, got: Expecting property name"),
        (b"[1, 2]", r"Expected a JSON object, got \[1, 2\]"),
        (b'{"head": "a", "relation": "r"}', "a number as 'tail', got none"),
        (b'{"head": "a", "relation": "r", "tail": null}', "as 'tail', got null"),
        (b'{"head": true, "relation": "r", "tail": "b"}', "as 'head', got true"),
        (b'{"head": "\xff", "relation": "r", "tail": "b"}', "got: 'utf-8' codec"),
        (b"[" * 100_000, "Expected a JSON object, got: maximum recursion"),
    ],
)
def test_a_bad_line_is_refused_with_its_place_or_skipped(
    tmp_path: Path, line: bytes, reason: str
) -> None:
    path = write(tmp_path / "f.jsonl", {"head": "a", "relation": "r", "tail": "b"})
    path.write_bytes(path.read_bytes() + b"\n" + line + b"\n")
    with pytest.raises(DataError, match=rf"{reason}.* at .*f\.jsonl:3\."):
        rows(path)
    skipping = Reading(bad_rows=BadRows(skip=True))
    assert rows(path, skipping) == [("a", "r", "b")]
    assert [row.place for row in skipping.bad_rows.rows] == [f"{path}:3"]
