"""``knowformer import`` and ``knowformer audit`` as a user types them, good input and bad."""

import gzip
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import family_triples, write_lines

Refuse = Callable[..., str]
Here = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [line.replace("\t", ";") for line in family_triples("f", 8)]
    return write_lines(tmp_path / "family.csv", ["who;does what;whom", *rows])


NAMED = ["--columns", "who,does what,whom"]


def test_a_table_is_imported_audited_trained_and_asked(
    table: Path, tmp_path: Path, succeed: Callable[..., str], command: Here, tiny: list[str]
) -> None:
    names = write_lines(tmp_path / "names.tsv", ["f0_ann\tAnn of the first family"])
    folder = tmp_path / "family"
    printed = succeed("import", table, "--out", folder, *NAMED, "--labels", names)
    assert "head = who" in printed
    assert "symmetric relations" in printed
    assert f"Next: knowformer train {folder} --out runs/family" in printed
    assert (folder / "entity_names.txt").read_text() == "f0_ann\tAnn of the first family\n"
    assert command("train", folder, "--out", tmp_path / "run", *tiny).returncode == 0
    question = ["--head", "f0_ann", "--relation", "parent_of", "--threads", "1"]
    answered = command("answer", tmp_path / "run", *question).stdout
    assert "(Ann of the first family, parent_of, ?)" in answered


def test_json_tells_the_same(
    table: Path, tmp_path: Path, read_json: Callable[..., Any], command: Here
) -> None:
    folder = tmp_path / "family"
    told = json.loads(command("import", table, "--out", folder, *NAMED, "--json").stdout)
    assert told["rows"] == 64
    assert told["audit"] == json.loads((folder / "audit.json").read_text())
    assert read_json("audit", folder)["held_out"] == told["audit"]["held_out"]


def test_an_audit_lists_the_overlaps_that_it_speaks_of(command: Here) -> None:
    printed = command("audit", "nations").stdout
    assert "14" in next(line for line in printed.splitlines() if "entities" in line)
    assert "listed under 'overlaps'" in re.sub(r"[│\s]+", " ", printed)
    row = next(line for line in printed.splitlines() if "duplicate of" in line)
    assert re.search(r"reldiplomacy .* embassy .* 87 .* 100% .* 62%", row)


def test_bad_rows_are_passed_over_listed_and_end_in_2(
    table: Path, tmp_path: Path, command: Here
) -> None:
    with table.open("ab") as file:
        file.write(b"f0_ann;parent_of\nf0_ann;parent_of;caf\xe9\n")
    done = command("import", table, "--out", tmp_path / "family", *NAMED, "--skip-bad")
    assert done.returncode == 2
    assert "passed over 2" in done.stderr
    assert "52 train" in done.stdout
    listed = (tmp_path / "family" / "bad_rows.tsv").read_text().splitlines()
    assert [line.partition("\t")[0] for line in listed] == [f"{table}:66", f"{table}:67"]


def test_a_misspelt_column_is_answered_with_a_near_one(
    table: Path, tmp_path: Path, refuse: Refuse
) -> None:
    wrong = ["--columns", "who,does waht,whom"]
    said = refuse("import", table, "--out", tmp_path / "x", *wrong)
    assert "Did you mean 'does what'" in said


def test_options_of_tables_are_refused_for_rdf(tmp_path: Path, refuse: Refuse) -> None:
    (tmp_path / "f.nt").write_text("<http://a/b> <http://a/c> <http://a/d> .\n")
    out = ["--out", tmp_path / "x"]
    assert "got RDF" in refuse("import", tmp_path / "f.nt", *NAMED, *out)
    assert "got RDF" in refuse("import", tmp_path / "f.nt", "--temporal", "when", *out)


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("f.csv", b"", ["empty file"]),
        ("f.csv", b"a,b,c\nd,e\n", ["got 2", "f.csv:2."]),
        ("f.tsv", b"a\tb\tc\nd\te\t\xff\n", ["byte 0xff", "f.tsv:2."]),
        ("f.csv", b'a,b,c\nd,e,"f\ng"\n', ["line breaks", "f.csv:2."]),
        ("f.csv", b"a,b,c\n", ["Expected enough facts to hold some out"]),
        ("f.xyz", b"a,b,c\n", ["--format"]),
        ("f.xlsx", b"PK", ["Save the sheet as CSV"]),
        ("f.csv", "a,b,c\n".encode("utf-16"), ["got UTF-16"]),
        ("f.parquet", b"PAR1", ["Expected a whole Parquet file"]),
        ("f.nt", b"<http://a/b> <http://a/c> .\n", ["well-formed RDF", "f.nt:1."]),
        ("f.tsv.gz", gzip.compress(b"a\tb\tc\n" * 999, mtime=0)[:40], ["whole gzip file"]),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(
    name: str, content: bytes, parts: list[str], tmp_path: Path, refuse: Refuse
) -> None:
    (tmp_path / name).write_bytes(content)
    said = refuse("import", tmp_path / name, "--out", tmp_path / "deep" / "out")
    assert all(part in said for part in parts), said


def test_a_folder_that_is_there_is_left_alone(table: Path, tmp_path: Path, refuse: Refuse) -> None:
    assert "already" in refuse("import", table, "--out", tmp_path)
    assert "found none" in refuse("import", tmp_path / "no.csv", "--out", tmp_path / "x")
    assert "found a folder" in refuse("import", tmp_path, "--out", tmp_path / "x")
