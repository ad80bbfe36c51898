"""Parquet files by column; needs pyarrow, the extra ``frames``."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from knowformer.data.readers.byte_streams import size_of
from knowformer.data.readers.columns import named_layout
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows, Chunk, place, shorten
from knowformer.errors import DataError, require_package
from knowformer.storage.plain_files import open_plain

ROWS_PER_CHUNK = 65536


def read_parquet(path: Path, reading: Reading) -> Iterator[Chunk]:
    """Yields the rows of a file, some at a time.

    Raises:
        DataError: it is no Parquet file, or has not the columns or types that are wanted.
        MissingPackageError: pyarrow is not installed.
    """
    size_of(path)
    file = open_parquet(path)
    names: list[str] = file.schema_arrow.names
    layout = named_layout(path, names, reading.dialect, reading.roles)
    for role, index in zip(layout.roles, layout.indices, strict=True):
        if names.count(names[index]) > 1:
            raise DataError(
                f"Expected one column named {names[index]!r} in {path}, found "
                f"{names.count(names[index])}. Rename the others."
            )
        _check_type(path, role, file.schema_arrow.field(index))
    reading.note_layout(path, layout)
    yield from _chunks(path, file, [names[i] for i in layout.indices], reading)


def open_parquet(path: Path) -> Any:
    """Returns a ``pyarrow.parquet.ParquetFile``.

    Raises:
        DataError: it is no Parquet file, or cannot be read.
        MissingPackageError: pyarrow is not installed.
    """
    require_package("pyarrow", extra="frames", purpose=f"read {path}")
    import pyarrow.parquet as pq

    with whole_parquet(path), open_plain(path):  # no pipe
        return pq.ParquetFile(path)


@contextmanager
def whole_parquet(path: Path) -> Generator[None]:
    """Says in a sentence what pyarrow finds wrong with a file, when it is opened or later.

    Raises:
        DataError: the file is damaged, or cannot be read.
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        fault = shorten((str(error).splitlines() or [type(error).__name__])[0].rstrip("."))
        raise DataError(f"Expected a whole Parquet file at {path}, got: {fault}.") from error


def is_text(kind: Any) -> bool:
    """Returns True for an Arrow type of strings, as they are or by dictionary."""
    import pyarrow.types as t

    value: Any = kind.value_type if t.is_dictionary(kind) else kind
    return any(test(value) for test in (t.is_string, t.is_large_string, t.is_string_view))


def _check_type(path: Path, role: str, field: Any) -> None:
    import pyarrow.types as t

    kind: Any = field.type
    value: Any = kind.value_type if t.is_dictionary(kind) else kind
    tests = [t.is_integer, *([t.is_floating, t.is_temporal] if role == "time" else [])]
    if not is_text(kind) and not any(test(value) for test in tests):
        wanted = "times, numbers or text" if role == "time" else "text or whole numbers"
        raise DataError(
            f"Expected {wanted} in column {field.name!r} of {path} for the {role}, got {kind}. "
            "Choose another column with `columns`, or convert this one."
        )


def _chunks(path: Path, file: Any, names: list[str], reading: Reading) -> Iterator[Chunk]:
    done, total, size = 0, file.metadata.num_rows, path.stat().st_size
    with whole_parquet(path):
        for batch in file.iter_batches(batch_size=ROWS_PER_CHUNK, columns=names):
            columns = [_as_text(batch.column(name)) for name in names]
            numbers: list[int] = list(range(done + 1, done + batch.num_rows + 1))
            if any(None in column for column in columns):
                columns, numbers = _without_missing(path, names, columns, numbers, reading.bad_rows)
            yield Chunk(path, tuple(columns), numbers, "row")
            done += batch.num_rows
            reading.progress(size * done // max(total, 1))


def _as_text(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if values and isinstance(next((v for v in values if v is not None), ""), str):
        return values
    return [None if value is None else str(value) for value in values]


def _without_missing(
    path: Path, names: list[str], columns: list[list[Any]], numbers: list[int], bad_rows: BadRows
) -> tuple[list[list[Any]], list[int]]:
    good: list[int] = []
    for index, row in enumerate(zip(*columns, strict=True)):
        if None in row:
            name = names[row.index(None)]
            where = place(path, numbers[index], "row")
            bad_rows.add(where, f"Expected a value in column {name!r}, got none")
        else:
            good.append(index)
    return [[column[i] for i in good] for column in columns], [numbers[i] for i in good]
