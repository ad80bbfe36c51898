"""Answers to files: JSON lines with a question a line, TSV and Parquet with an answer a row."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from knowformer.answering.query_files import COLUMNS

Record = dict[str, Any]
"""The content of an ``AnswersResponse``, and the question's line."""

FACTS = ("line", *COLUMNS, "asks_for", "rank", "score", "probability", "probability_kind", "known")
ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}  # what would end a cell or a line
SPREAD = (
    "score_mean",
    "score_deviation",
    "probability_mean",
    "probability_deviation",
    "top_k_share",
)


def columns_of(*, has_labels: bool, has_spread: bool) -> tuple[str, ...]:
    """Returns the columns of TSV and Parquet."""
    return (*FACTS, *(["label"] if has_labels else []), *(SPREAD if has_spread else []))


def write_answers(
    path: Path, records: Iterable[Record], *, kind: str, columns: tuple[str, ...]
) -> None:
    """Writes answers to a file, holding few of them at a time."""
    writers: dict[str, Callable[[Path, Iterable[Record], tuple[str, ...]], None]] = {
        "jsonl": _write_json_lines,
        "tsv": _write_tsv,
        "parquet": _write_parquet,
    }
    writers[kind](path, records, columns)


def flat_rows(record: Record) -> list[Record]:
    """Returns a question's answers as facts: what was asked is filled in."""
    query = record["query"]
    rows: list[Record] = []
    for answer in record["answers"]:
        fact = {column: query[column] for column in COLUMNS}
        fact[query["asks_for"]] = answer.get("entity", answer.get("relation"))
        rows.append({**query, "line": record["line"], **answer, **fact, **answer.get("spread", {})})
    return rows


def _write_json_lines(path: Path, records: Iterable[Record], _columns: tuple[str, ...]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_tsv(path: Path, records: Iterable[Record], columns: tuple[str, ...]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        for record in records:
            for row in flat_rows(record):
                file.write("\t".join(_cell(row.get(column)) for column in columns) + "\n")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    if not any(mark in text for mark in ESCAPES):
        return text
    text = text.replace("\\", "\\\\")
    for mark, written in ESCAPES.items():
        text = text.replace(mark, written)
    return text


def _write_parquet(path: Path, records: Iterable[Record], columns: tuple[str, ...]) -> None:
    import pyarrow
    import pyarrow.parquet

    numbers = {"line": pyarrow.int64(), "rank": pyarrow.int32(), "known": pyarrow.bool_()}
    floats = {"score", "probability", *SPREAD}
    text = pyarrow.string()
    schema = pyarrow.schema(
        [(c, numbers.get(c, pyarrow.float64() if c in floats else text)) for c in columns]
    )
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        waiting: list[Record] = []
        for record in records:
            waiting += ({c: row.get(c) for c in columns} for row in flat_rows(record))
            if len(waiting) >= 50_000:
                writer.write_table(pyarrow.Table.from_pylist(waiting, schema=schema))
                waiting = []
        writer.write_table(pyarrow.Table.from_pylist(waiting, schema=schema))
