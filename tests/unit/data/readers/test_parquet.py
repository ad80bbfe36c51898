from pathlib import Path
from typing import Any

import pytest

from knowformer.data.readers.columns import Dialect
from knowformer.data.readers.parquet import is_text, open_parquet, read_parquet
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows
from knowformer.errors import DataError, MissingPackageError

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")


def write(path: Path, **columns: list[Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_whole_numbers_are_names_and_times_may_be_dates(tmp_path: Path) -> None:
    from datetime import date

    day = date(2024, 5, 31)
    path = write(
        tmp_path / "f.parquet", head=[1, 2], relation=["r", "r"], tail=[2, 3], at=[day] * 2
    )
    (chunk,) = read_parquet(path, Reading(Dialect(time="at")))
    assert chunk.columns == (["1", "2"], ["r", "r"], ["2", "3"], ["2024-05-31"] * 2)
    assert chunk.place(1) == f"row 2 of {path}"


def test_a_missing_value_is_skipped_with_its_row(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", head=["a", None], relation=["r", "r"], tail=["b", "c"])
    reading = Reading(bad_rows=BadRows(skip=True))
    (chunk,) = read_parquet(path, reading)
    assert chunk.columns == (["a"], ["r"], ["b"])
    assert [row.place for row in reading.bad_rows.rows] == [f"row 2 of {path}"]


def test_text_is_text_by_dictionary_too() -> None:
    assert is_text(pa.string())
    assert is_text(pa.dictionary(pa.int8(), pa.large_string()))
    assert not is_text(pa.int64())


def test_what_is_no_parquet_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "f.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(DataError, match=r"Expected a whole Parquet file at .*f\.parquet"):
        open_parquet(tmp_path / "f.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'knowformer\[frames\]'"):
        open_parquet(tmp_path / "f.parquet")
