from pathlib import Path

import pytest

from knowformer import errors
from knowformer.errors import ConfigError, MissingPackageError
from knowformer.evaluation.rank_files import check_writable, write_columns

COLUMNS = {
    "head": ["a", 'b,"\tc'],
    "rank": [1.5, 2.0],
    "score": [None, -0.5],
    "seen": [False, True],
}


def test_text_files_quote_what_would_end_a_cell(tmp_path: Path) -> None:
    write_columns(tmp_path / "ranks.csv", COLUMNS)
    lines = (tmp_path / "ranks.csv").read_text("utf-8").splitlines()
    assert lines == ["head,rank,score,seen", "a,1.5,,false", '"b,""\tc",2.0,-0.5,true']
    write_columns(tmp_path / "ranks.tsv", COLUMNS)
    assert (tmp_path / "ranks.tsv").read_text("utf-8").splitlines()[1] == "a\t1.5\t\tfalse"
    assert len(list(tmp_path.iterdir())) == 2  # nothing half-written stays behind


def test_parquet_keeps_types_and_what_is_missing(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_columns(tmp_path / "ranks.parquet", COLUMNS)
    assert parquet.read_table(tmp_path / "ranks.parquet").to_pydict() == COLUMNS


def test_other_names_and_a_missing_package_are_refused_beforehand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match=r"\.parquet, \.tsv or \.csv, got 'ranks\.xlsx'"):
        check_writable(Path("ranks.xlsx"))
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"knowformer\[frames\]"):
        check_writable(Path("ranks.parquet"))
