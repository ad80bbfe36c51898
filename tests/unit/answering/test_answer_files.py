"""Files of answers: a question a line, or a fact a row."""

import csv
import json
from pathlib import Path
from typing import Any

from knowformer.answering.answer_files import columns_of, flat_rows, write_answers

RECORD: dict[str, Any] = {
    "line": 7,
    "query": {
        **{"head": "a\tb", "relation": "r", "tail": None, "asks_for": "tail"},
        **{"candidates": 9, "known": 3, "probability_kind": "model"},
    },
    "answers": [
        {
            **{"entity": "c\nd\re", "rank": 1, "score": 0.5, "probability": 0.25, "known": False},
            "spread": {"samples": 2, "score_mean": 0.75},
        }
    ],
}


def test_a_flat_row_is_the_fact_that_the_answer_makes():
    (row,) = flat_rows(RECORD)
    assert (row["head"], row["relation"], row["tail"]) == ("a\tb", "r", "c\nd\re")
    assert (row["line"], row["known"], row["score_mean"]) == (7, False, 0.75)
    asked = RECORD | {
        "query": RECORD["query"] | {"asks_for": "relation", "relation": None, "tail": "t"},
        "answers": [{"relation": "s", "rank": 1}],
    }
    (row,) = flat_rows(asked)
    assert (row["relation"], row["tail"]) == ("s", "t")


def test_a_name_with_line_breaks_stays_in_its_cell(tmp_path: Path):
    columns = ("head", "tail", "rank", "known", "label")
    write_answers(tmp_path / "o.tsv", [RECORD], kind="tsv", columns=columns)
    written = (tmp_path / "o.tsv").read_text("utf-8").splitlines()
    assert written == ["\t".join(columns), "a\\tb\tc\\nd\\re\t1\tfalse\t"]
    write_answers(tmp_path / "o.csv", [RECORD], kind="csv", columns=columns)
    with (tmp_path / "o.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row == {"head": "a\tb", "tail": "c\nd\re", "rank": "1", "known": "false", "label": ""}


def test_json_lines_are_the_records(tmp_path: Path):
    write_answers(tmp_path / "o.jsonl", [RECORD] * 2, kind="jsonl", columns=())
    lines = (tmp_path / "o.jsonl").read_text("utf-8").splitlines()
    assert list(map(json.loads, lines)) == [RECORD] * 2


def test_columns_grow_with_what_answers_have():
    plain = columns_of(has_labels=False, has_spread=False)
    assert plain[:4] == ("line", "head", "relation", "tail")
    both = columns_of(has_labels=True, has_spread=True)
    assert both[: len(plain) + 1] == (*plain, "label")
    assert both[-1] == "top_k_share"
