"""Files of questions, row by row."""

import json
from pathlib import Path

import pytest

from knowformer.answering.query_files import cut, file_format, measure, read_rows
from knowformer.errors import ConfigError, DataError

ASKED = {"head": "a", "relation": "r", "tail": None}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.tsv", "a\tr\t?\n"),
        ("q.tsv", "a\tr\n"),
        ("q.txt", "\ufeffa\tr\t\r\n"),
        ("q.tsv", "Relation\tHEAD\nr\ta\n"),
        ("q.csv", "a,r,?\n"),
        ("q.csv", 'relation,head\nr,"a"\n'),
        ("q.jsonl", '{"head": "a", "relation": "r"}\n'),
        ("q.ndjson", '\n{"head": "a", "relation": "r", "tail": null}'),
    ],
)
def test_a_question_may_be_written_in_several_ways(name: str, content: str, tmp_path: Path):
    path = tmp_path / name
    path.write_bytes(content.encode())
    (row,) = read_rows(path)
    assert row.parts == ASKED
    assert row.fault is None


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        ("q.tsv", b"a\tr\tt\tu", "2 or 3 columns"),
        ("q.tsv", b"\xff\tr\t?", "UTF-8"),
        ("q.jsonl", b"{", "Expected a JSON object"),
        ("q.jsonl", b"[1]", "got list"),
        ("q.jsonl", b'{"head": 3, "relation": "r"}', "name as head, got 3"),
    ],
)
def test_a_row_at_fault_says_why_and_the_next_one_is_read(
    name: str, line: bytes, says: str, tmp_path: Path
):
    path = tmp_path / name
    good = b"a\tr\t?" if name.endswith("tsv") else json.dumps(ASKED).encode()
    path.write_bytes(line + b"\n" + good)
    bad, other = read_rows(path)
    assert bad.fault is not None
    assert says in bad.fault
    assert (other.line, other.fault, other.parts) == (2, None, ASKED)


def test_parquet_is_read_by_its_columns(tmp_path: Path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "q.parquet"
    parquet.write_table(pyarrow.table({"relation": ["r"], "head": ["a"], "n": [1]}), path)
    (row,) = read_rows(path)
    assert (row.line, row.parts) == (1, ASKED)
    assert measure(path)[0] == 1


def test_a_file_is_counted_and_summed(tmp_path: Path):
    path = tmp_path / "q.tsv"
    path.write_bytes(b"a\tr\n" * 3)
    lines, checksum = measure(path)
    assert lines == 3
    path.write_bytes(b"a\tr\n" * 2 + b"a\ts\n")
    assert measure(path)[1] != checksum
    with pytest.raises(DataError, match="found none"):
        measure(tmp_path / "none.tsv")


def test_another_ending_is_refused():
    assert file_format(Path("A.TSV")) == "tsv"
    with pytest.raises(ConfigError, match=r"'q\.xls'"):
        file_format(Path("q.xls"))


CUT = {
    "q.tsv": "relation\thead\nr\ta\n\nr\tb\nr\tc\nr\td",
    "q.csv": "a,r,?\nb,r,?\n\nc,r\nd,r\n",
    "q.jsonl": "\ufeff" + "".join(f'{{"head": "{h}", "relation": "r"}}\n' for h in "abcd"),
}


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("name", CUT)
def test_the_pieces_of_a_file_are_the_file(name: str, size: int, tmp_path: Path):
    path = tmp_path / name
    path.write_text(CUT[name], "utf-8")
    whole = list(read_rows(path))
    assert [row.parts["head"] for row in whole] == list("abcd")
    spans = cut(path, size)
    assert [row for span in spans for row in read_rows(path, span)] == whole
    num_lines = len(CUT[name].splitlines())
    assert [span.first for span in spans] == list(range(1, num_lines + 1, size))


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("group", [1, 3, 100])
def test_the_pieces_of_a_parquet_file_are_the_file(group: int, size: int, tmp_path: Path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "q.parquet"
    table = pyarrow.table({"head": [f"e{n}" for n in range(8)], "relation": ["r"] * 8})
    parquet.write_table(table, path, row_group_size=group)
    pieces = [list(read_rows(path, span)) for span in cut(path, size)]
    assert [row for piece in pieces for row in piece] == list(read_rows(path))
    assert [len(piece) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
