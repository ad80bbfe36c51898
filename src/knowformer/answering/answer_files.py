"""Answers to files: JSON lines with a question a line; TSV, CSV and Parquet an answer a row."""

import csv
import json
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from knowformer.answering.query_files import COLUMNS, file_format
from knowformer.answering.responses import MissingFactsResponse
from knowformer.answering.results import MissingFacts
from knowformer.storage.atomic_files import atomic_path

Record = dict[str, Any]
"""The content of an ``AnswersResponse``, and the question's line."""

FACTS = ("line", *COLUMNS, "asks_for", "rank", "score", "probability", "probability_kind", "known")
ROWS_AT_ONCE = 50_000  # that a Parquet file is written by
ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}  # what would end a cell or a line
SPREAD = (
    "score_mean",
    "score_deviation",
    "probability_mean",
    "probability_deviation",
    "top_k_share",
)


def columns_of(
    *, has_labels: bool = False, has_spread: bool = False, has_typical: bool = False
) -> tuple[str, ...]:
    """Returns the columns of TSV, CSV and Parquet."""
    optional = {"label": has_labels, "typical_rank": has_typical}
    shown = [name for name, is_there in optional.items() if is_there]
    return (*FACTS, "share", *shown, *(SPREAD if has_spread else []))


def write_answers(
    path: Path, records: Iterable[Record], *, kind: str, columns: tuple[str, ...]
) -> None:
    """Writes answers to a file, holding few of them at a time."""
    if kind == "jsonl":
        write_table(path, records, kind=kind, columns=())
    else:
        rows = (row for record in records for row in flat_rows(record))
        write_table(path, rows, kind=kind, columns=columns)


def write_table(path: Path, rows: Iterable[Record], *, kind: str, columns: tuple[str, ...]) -> None:
    """Writes rows to a file; JSON lines hold all of a row, the others these columns of it."""
    writers: dict[str, Callable[[Path, Iterable[Record], tuple[str, ...]], None]] = {
        "jsonl": _write_json_lines,
        "tsv": _write_tsv,
        "csv": _write_csv,
        "parquet": _write_parquet,
    }
    writers[kind](path, rows, columns)


def write_missing_facts(path: Path, missing: MissingFacts) -> None:
    """Writes new facts of a relation, one a row; the name's ending says the format.

    Raises:
        UserError: the ending is none that is known, or the file cannot be written.
    """
    kind = file_format(path)
    rows = [
        {"probability_kind": missing.probability_kind, **fact}
        for fact in MissingFactsResponse.of(missing).content()["facts"]
    ]
    labels = [name for name in ("head_label", "tail_label") if any(name in row for row in rows)]
    columns = (*COLUMNS, "rank", "score", "probability", "probability_kind", *labels)
    with atomic_path(path) as temporary:
        write_table(temporary, rows, kind=kind, columns=columns)


def flat_rows(record: Record) -> list[Record]:
    """Returns a question's answers as facts: what was asked is filled in."""
    query = record["query"]
    rows: list[Record] = []
    for answer in record["answers"]:
        fact = {column: query[column] for column in COLUMNS}
        fact[query["asks_for"]] = answer.get("entity", answer.get("relation"))
        rows.append({**query, "line": record["line"], **answer, **fact, **answer.get("spread", {})})
    return rows


def _write_json_lines(path: Path, rows: Iterable[Record], _columns: tuple[str, ...]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_tsv(path: Path, rows: Iterable[Record], columns: tuple[str, ...]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        for row in rows:
            file.write("\t".join(tsv_cell(row.get(column)) for column in columns) + "\n")


def _write_csv(path: Path, rows: Iterable[Record], columns: tuple[str, ...]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def tsv_cell(value: Any) -> str:
    """Returns a value as a cell of a table: what would end a cell or a line is escaped."""
    text = _cell(value)
    if not any(mark in text for mark in ESCAPES):
        return text
    text = text.replace("\\", "\\\\")
    for mark, written in ESCAPES.items():
        text = text.replace(mark, written)
    return text


def _write_parquet(path: Path, rows: Iterable[Record], columns: tuple[str, ...]) -> None:
    import pyarrow
    import pyarrow.parquet

    numbers = {"line": pyarrow.int64(), "known": pyarrow.bool_()}
    numbers |= dict.fromkeys(("rank", "typical_rank"), pyarrow.int32())
    floats = {"score", "probability", "share", *SPREAD}
    text = pyarrow.string()
    schema = pyarrow.schema(
        [(c, numbers.get(c, pyarrow.float64() if c in floats else text)) for c in columns]
    )
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        left = iter(rows)
        while some := [{c: row.get(c) for c in columns} for row in islice(left, ROWS_AT_ONCE)]:
            writer.write_table(pyarrow.Table.from_pylist(some, schema=schema))
