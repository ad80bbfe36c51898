"""JSON Lines: an object a line, whose keys are the columns. Whole numbers become names."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

from knowformer.data.readers.byte_streams import open_source
from knowformer.data.readers.columns import Layout, named_layout
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows, Chunk, place, shorten

LINES_PER_CHUNK = 1024


def read_json_lines(path: Path, reading: Reading) -> Iterator[Chunk]:
    """Yields the objects of a file as rows, some at a time; the first one tells the columns.

    Raises:
        DataError: the file cannot be read, the first object has other keys, or a line is bad.
    """
    layout: Layout | None = None
    with open_source(path) as source:
        numbered = enumerate(source.content, start=1)
        while lines := list(islice(numbered, LINES_PER_CHUNK)):
            numbers: list[int] = []
            rows: list[list[str]] = []
            for number, line in lines:
                content = _parse(place(path, number), line, reading.bad_rows)
                if content is None:
                    continue
                layout = layout or _layout(path, content, reading)
                row = _row(place(path, number), content, layout, reading.bad_rows)
                if row is not None:
                    rows.append(row)
                    numbers.append(number)
            if rows:
                yield Chunk(path, tuple(zip(*rows, strict=True)), numbers)
            reading.progress(source.bytes_read())


def _parse(where: str, line: bytes, bad_rows: BadRows) -> dict[str, Any] | None:
    """Returns a line's object; None when the line is blank, or bad and skipped."""
    if not line.strip():
        return None
    try:
        content: Any = json.loads(line)
    except (ValueError, RecursionError) as error:  # ValueError: not JSON, or not UTF-8
        bad_rows.add(where, f"Expected a JSON object, got: {error}")
        return None
    if not isinstance(content, dict):
        bad_rows.add(where, f"Expected a JSON object, got {shorten(repr(content))}")
        return None
    return cast("dict[str, Any]", content)


def _layout(path: Path, first: dict[str, Any], reading: Reading) -> Layout:
    layout = named_layout(path, list(first), reading.dialect, reading.roles)
    reading.note_layout(path, layout)
    return layout


def _row(
    where: str, content: dict[str, Any], layout: Layout, bad_rows: BadRows
) -> list[str] | None:
    row: list[str] = []
    for role, index in zip(layout.roles, layout.indices, strict=True):
        key = layout.first_row[index]
        value = content.get(key)
        kinds = (str, int, float) if role == "time" else (str, int)
        if not isinstance(value, kinds) or isinstance(value, bool):
            got = shorten(json.dumps(value)) if key in content else "none"
            bad_rows.add(where, f"Expected text or a number as {key!r}, got {got}")
            return None
        row.append(str(value))
    return row
