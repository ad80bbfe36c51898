"""Files of questions to files of answers: formats, bad rows, kill -9, and what is refused."""

import csv
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from knowformer import Reasoner
from knowformer.answering import batch_job

Refuse = Callable[..., str]

QUESTIONS = [
    {"head": "usa", "relation": "embassy", "tail": None},
    {"head": None, "relation": "embassy", "tail": "usa"},
    {"head": "usa", "relation": None, "tail": "uk"},
    {"head": "cuba", "relation": "treaties", "tail": None},
    {"head": "usa", "relation": "embassy", "tail": None},
]


@pytest.fixture
def answer(nations_run: Path, command: Callable[..., Any]) -> Callable[..., Any]:
    """Runs ``answer`` on the run of nations and returns exit code, output and error."""
    return partial(command, "answer", nations_run, "--threads", "1")


def write_questions(path: Path, questions: list[dict[str, str | None]]) -> Path:
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        text = pyarrow.string()
        schema = pyarrow.schema([(name, text) for name in ("head", "relation", "tail")])
        table = pyarrow.Table.from_pylist(questions, schema=schema)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
        return path
    mark = {".tsv": "\t", ".csv": ","}.get(path.suffix)
    lines = [mark.join(v or "?" for v in q.values()) if mark else json.dumps(q) for q in questions]
    path.write_text("\n".join(lines), "utf-8")
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The flat rows of a TSV or Parquet file, numbers as numbers."""
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    with path.open(encoding="utf-8", newline="") as file:
        dialect = {} if path.suffix == ".csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
        rows = list(csv.DictReader(file, **dialect))
    numbers = {"line": int, "rank": int, "score": float, "probability": float}
    return [
        {**row, **{n: of(row[n]) for n, of in numbers.items()}, "known": row["known"] == "true"}
        for row in rows
    ]


@pytest.fixture(scope="module")
def asked_alone(nations_run: Path, command: Callable[..., Any]) -> list[dict[str, Any]]:
    """What each of the questions gives when it is asked by itself."""

    def ask(question: dict[str, str | None]) -> dict[str, Any]:
        given = [a for name, value in question.items() if value for a in (f"--{name}", value)]
        how = ["-k", "3", "--no-typical", "--threads", "1", "--json"]
        done = command("answer", nations_run, *given, *how)
        return json.loads(done.stdout)

    return list(map(ask, QUESTIONS))


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet"])
def test_questions_of_every_format_are_answered_as_asked_alone(
    ending: str,
    answer: Callable[..., Any],
    asked_alone: list[dict[str, Any]],
    tmp_path: Path,
):
    queries = write_questions(tmp_path / f"questions.{ending}", QUESTIONS)
    done = answer("--queries", queries, "--out", tmp_path / "out.jsonl", "-k", "3")
    assert done.returncode == 0, done.stdout
    assert "Answered 5 of 5 questions" in done.stdout
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert records == [{"line": i, **alone} for i, alone in enumerate(asked_alone, start=1)]
    assert not list(tmp_path.glob("*.parts"))
    assert not list(tmp_path.glob("*.rejected"))


@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet"])
def test_tables_of_answers_say_the_same(
    ending: str,
    answer: Callable[..., Any],
    asked_alone: list[dict[str, Any]],
    tmp_path: Path,
):
    queries = write_questions(tmp_path / "questions.jsonl", QUESTIONS)
    out = tmp_path / f"out.{ending}"
    assert answer("--queries", queries, "--out", out, "-k", "3").returncode == 0
    rows = read_rows(out)
    assert len(rows) == 15
    assert {(r["head"], r["relation"], r["tail"]) for r in rows[:3]} == {
        ("usa", "embassy", a["entity"]) for a in asked_alone[0]["answers"]
    }
    relation = asked_alone[2]["answers"][1]
    assert rows[7]["relation"] == relation["relation"]
    assert rows[7]["probability"] == pytest.approx(relation["probability"])
    assert {row["probability_kind"] for row in rows} == {"calibrated"}


def test_columns_may_be_named_and_in_any_order(answer: Callable[..., Any], tmp_path: Path):
    queries = tmp_path / "q.tsv"
    queries.write_text("relation\thead\r\nembassy\tusa\r\n\r\ntreaties\tcuba\r\n", "utf-8")
    done = answer("--queries", queries, "--out", tmp_path / "out.tsv", "-k", "1", "--json")
    assert json.loads(done.stdout)["answered"] == 2
    rows = read_rows(tmp_path / "out.tsv")
    assert [(r["line"], r["head"], r["relation"]) for r in rows] == [
        (2, "usa", "embassy"),
        (4, "cuba", "treaties"),
    ]


def test_spread_is_asked_for_in_batches_too(answer: Callable[..., Any], tmp_path: Path):
    queries = write_questions(tmp_path / "q.jsonl", QUESTIONS[:1])
    answer("--queries", queries, "--out", tmp_path / "o.parquet", "--samples", "3", "-k", "2")
    for row in read_rows(tmp_path / "o.parquet"):
        assert row["score_deviation"] > 0
        assert 0 < row["top_k_share"] <= 1


def test_bad_rows_are_listed_with_their_line_and_reason_and_the_rest_answered(
    answer: Callable[..., Any], tmp_path: Path
):
    queries = tmp_path / "q.tsv"
    good = ["usa\tembassy\t?"] * 600
    good[3], good[550], good[599] = "usaa\tembassy\t?", "usa", "usa\tembasy\t?"
    queries.write_bytes("\n".join(good).encode() + b"\nbad \xff byte\tembassy\t?\n")
    out = tmp_path / "out.jsonl"
    done = answer("--queries", queries, "--out", out, "-k", "1")
    assert done.returncode == 2
    assert "Answered 597 of 601 questions" in done.stdout
    rejected = (tmp_path / "out.jsonl.rejected").read_text("utf-8").splitlines()
    assert rejected[0] == "line\treason\trow"
    fields = [line.split("\t") for line in rejected[1:]]
    assert [line for line, _, _ in fields] == ["4", "551", "600", "601"]
    reasons = [reason for _, reason, _ in fields]
    assert "'usaa'" in reasons[0]
    assert "Did you mean 'usa'?" in reasons[0]
    assert "2 or 3 columns" in reasons[1]
    assert "'embassy'" in reasons[2]
    assert "UTF-8" in reasons[3]
    lines = [json.loads(line)["line"] for line in out.read_text("utf-8").splitlines()]
    assert lines == [n for n in range(1, 602) if n not in {4, 551, 600, 601}]
    # Mended and asked again: nothing is left of the list.
    write_questions(queries, QUESTIONS)
    assert answer("--queries", queries, "--out", out).returncode == 0
    assert not (tmp_path / "out.jsonl.rejected").exists()


def test_after_many_bad_rows_near_names_are_no_longer_looked_for(
    answer: Callable[..., Any], tmp_path: Path
):
    queries = tmp_path / "q.tsv"
    queries.write_text("usaa\tembassy\n" * 150 + "usa\tembasy\n", "utf-8")
    assert answer("--queries", queries, "--out", tmp_path / "o.tsv").returncode == 2
    rejected = (tmp_path / "o.tsv.rejected").read_text("utf-8").splitlines()[1:]
    assert len(rejected) == 151
    assert "Did you mean" in rejected[99]
    assert "Did you mean" not in rejected[100]
    assert "known relation, got 'embasy'" in rejected[150]


@pytest.mark.slow
def test_a_batch_killed_again_and_again_goes_on_and_ends_with_the_same_bytes(
    nations_run: Path,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    answer: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
):
    queries = tmp_path / "q.tsv"
    entities = ["usa", "uk", "cuba", "china", "egypt", "india", "brazil", "poland"]
    relations = ["embassy", "treaties", "exports3", "tourism3"] * 8
    lines = [f"{h}\t{r}\t?" for h in entities for _ in entities for r in relations]
    queries.write_text("\n".join(lines) + "\n", "utf-8")
    quiet, out = tmp_path / "quiet.jsonl", tmp_path / "out.jsonl"
    asked = ["--queries", queries, "-k", "3"]
    assert answer(*asked, "--out", quiet).returncode == 0
    parts = tmp_path / "out.jsonl.parts"
    for wanted in (1, 2):
        process = start("answer", nations_run, *asked, "--threads", "1", "--out", out)
        while process.poll() is None and len(list(parts.glob("part-*"))) < wanted:
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert not out.exists()
        assert len(list(parts.glob("part-*"))) >= wanted
    before = {part.name: part.stat().st_mtime_ns for part in parts.glob("part-*")}
    after: dict[str, int] = {}
    remove = shutil.rmtree

    def look_and_remove(folder: Path, **options: Any) -> None:
        after.update({part.name: part.stat().st_mtime_ns for part in folder.glob("part-*")})
        remove(folder, **options)

    monkeypatch.setattr(batch_job.shutil, "rmtree", look_and_remove)
    assert answer(*asked, "--out", out).returncode == 0
    assert len(after) == 4
    assert {name: after[name] for name in before} == before  # not made again
    assert out.read_bytes() == quiet.read_bytes()
    assert not parts.exists()


def test_parts_of_other_questions_are_not_used(answer: Callable[..., Any], tmp_path: Path):
    out = tmp_path / "out.jsonl"
    parts = tmp_path / "out.jsonl.parts"
    parts.mkdir()
    (parts / "manifest.json").write_text("{}", "utf-8")
    (parts / "part-00000000.jsonl").write_text('{"line": 99}\n', "utf-8")
    queries = write_questions(tmp_path / "q.tsv", QUESTIONS)
    assert answer("--queries", queries, "--out", out).returncode == 0
    assert [json.loads(line)["line"] for line in out.read_text().splitlines()] == [1, 2, 3, 4, 5]


def test_a_folder_that_is_not_of_parts_is_left_alone(
    nations_run: Path, tmp_path: Path, refuse: Refuse
):
    queries = write_questions(tmp_path / "q.tsv", QUESTIONS)
    mine = tmp_path / "out.tsv.parts"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine", "utf-8")
    said = refuse("answer", nations_run, "--queries", queries, "--out", tmp_path / "out.tsv")
    assert "holds something else" in said


BAD = {
    "no such file": ("q.tsv", "out.tsv", [], ["found none"]),
    "another ending": ("q.xls", "out.tsv", [], ["'q.xls'", ".parquet"]),
    "another ending of answers": ("q.jsonl", "out.xlsx", [], ["'out.xlsx'"]),
    "no answers": ("q.jsonl", "out.tsv", ["-k", "0"], ["positive number of answers, got 0"]),
    "no samples": ("q.jsonl", "out.tsv", ["--samples", "0"], ["number of samples, got 0"]),
    "also a question": ("q.jsonl", "out.tsv", ["--head", "usa"], ["--queries", "--head"]),
    "a folder as target": ("q.jsonl", "folder.tsv", [], ["folder.tsv", "Is a directory"]),
    "below a file": ("q.jsonl", "q.jsonl/out.tsv", [], ["q.jsonl/out.tsv", "Not a directory"]),
    "numbers": ("numbers.parquet", "out.tsv", [], ["text in column 'head'", "int64"]),
    "other columns": ("other.parquet", "out.tsv", [], ["two of the columns", "subject"]),
    "no parquet": ("broken.parquet", "out.tsv", [], ["Parquet file"]),
    "empty": ("empty.tsv", "out.tsv", [], ["empty file"]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_asked_or_written_is_refused(
    case: str, nations_run: Path, tmp_path: Path, refuse: Refuse
):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    write_questions(tmp_path / "q.jsonl", QUESTIONS)
    shutil.copyfile(tmp_path / "q.jsonl", tmp_path / "q.xls")
    (tmp_path / "folder.tsv").mkdir()
    (tmp_path / "empty.tsv").write_text("\n\n", "utf-8")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    parquet.write_table(
        pyarrow.table({"head": [1, 2], "relation": ["a", "b"]}), tmp_path / "numbers.parquet"
    )
    parquet.write_table(
        pyarrow.table({"subject": ["a"], "head": ["b"]}), tmp_path / "other.parquet"
    )
    queries, out, more, parts = BAD[case]
    said = refuse(
        *("answer", nations_run, "--queries", tmp_path / queries, "--out", tmp_path / out, *more)
    )
    assert all(part in said for part in parts), said


def test_queries_without_out_are_refused(nations_run: Path, tmp_path: Path, refuse: Refuse):
    queries = write_questions(tmp_path / "q.jsonl", QUESTIONS)
    assert "--out with --queries" in refuse("answer", nations_run, "--queries", queries)
    assert "--all-missing with --out" in refuse("answer", nations_run, "--out", tmp_path / "o.tsv")


def test_answers_never_take_the_place_of_their_questions(
    nations_run: Path, tmp_path: Path, refuse: Refuse
):
    queries = write_questions(tmp_path / "q.jsonl", QUESTIONS)
    (tmp_path / "same.jsonl").symlink_to(queries)
    for out in (queries, tmp_path / "same.jsonl"):
        said = refuse("answer", nations_run, "--queries", queries, "--out", out)
        assert "another file for the answers than for the questions" in said


def test_missing_facts_have_no_spread(nations_run: Path, refuse: Refuse):
    asked = ["--all-missing", "embassy", "--samples", "4"]
    assert "no --samples" in refuse("answer", nations_run, *asked)


def test_python_answers_a_file_as_the_command_does(
    nations_run: Path, answer: Callable[..., Any], tmp_path: Path
):
    queries = write_questions(tmp_path / "q.tsv", QUESTIONS)
    assert answer("--queries", queries, "--out", tmp_path / "c.tsv", "-k", "3").returncode == 0
    reasoner = Reasoner.from_pretrained(nations_run, threads=1)
    steps: list[tuple[int, int]] = []
    summary = reasoner.answer_file(
        str(queries), tmp_path / "p.tsv", k=3, progress=lambda *step: steps.append(step)
    )
    assert (summary.answered, summary.rejected, summary.resumed) == (5, 0, 0)
    assert steps == [(5, 5), (5, 5)]  # answered, then written
    assert (tmp_path / "p.tsv").read_bytes() == (tmp_path / "c.tsv").read_bytes()


def test_missing_facts_are_listed(answer: Callable[..., Any]):
    printed = json.loads(answer("--all-missing", "embassy", "-k", "4", "--json").stdout)
    assert printed.keys() == {"query", "facts"}
    assert printed["query"]["all_missing"] == "embassy"
    assert [fact["rank"] for fact in printed["facts"]] == [1, 2, 3, 4]
    likely = [fact["probability"] for fact in printed["facts"]]
    assert likely == sorted(likely, reverse=True)
    table = answer("--all-missing", "embassy", "-k", "4").stdout
    assert "new facts of embassy" in table


def test_missing_facts_are_written_and_may_be_of_some_entities_alone(
    answer: Callable[..., Any], tmp_path: Path
):
    names, out = tmp_path / "names.txt", tmp_path / "new.csv"
    names.write_text("cuba\nusa\nuk\n", "utf-8")
    asked = ["--all-missing", "embassy", "-k", "9", "--candidates", names, "--out", out]
    assert answer(*asked).stdout.strip() == f"Written: {out}"
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["rank"]) for row in rows] == list(range(1, len(rows) + 1))
    assert {row["tail"] for row in rows} <= {"cuba", "usa", "uk"}
    assert {row["relation"] for row in rows} == {"embassy"}
    of_type = ["--relation", "embassy", "--head", "usa", "--type", "treaties:tail", "--json"]
    printed = json.loads(answer(*of_type, "--candidates", names).stdout)
    assert printed["query"]["candidates"] <= 3
    assert all(found["typical_rank"] >= 1 for found in printed["answers"])


def test_an_unknown_relation_is_named_with_those_that_exist(nations_run: Path, refuse: Refuse):
    said = refuse("answer", nations_run, "--all-missing", "zzzz")
    assert "55 relation names, got 'zzzz'. Known: " in said
    assert "embassy" in said


def test_readable_names_are_understood_and_shown(answer: Callable[..., Any], tmp_path: Path):
    labels = tmp_path / "labels.tsv"
    labels.write_text("usa\tUnited States\nuk\tUnited Kingdom\nembassy\thas embassy in\n", "utf-8")
    named = ["--head", "United States", "--relation", "has embassy in", "--labels", labels]
    printed = json.loads(answer(*named, "-k", "14", "--json").stdout)
    assert printed["query"]["head"] == "usa"
    assert printed["query"]["relation"] == "embassy"
    shown = {answer["entity"]: answer.get("label") for answer in printed["answers"]}
    assert shown["uk"] == "United Kingdom"
    assert shown["cuba"] is None
    assert "(United States, has embassy in, ?)" in answer(*named).stdout
    queries = write_questions(
        tmp_path / "q.tsv", [{"h": "United States", "r": "embassy", "t": None}]
    )
    asked = ["--queries", queries, "--out", tmp_path / "o.tsv", "-k", "14"]
    assert answer(*asked, "--labels", labels).returncode == 0
    assert "United Kingdom" in {row["label"] for row in read_rows(tmp_path / "o.tsv")}


def test_a_readable_name_of_several_is_refused(nations_run: Path, tmp_path: Path, refuse: Refuse):
    labels = tmp_path / "labels.tsv"
    labels.write_text("usa\tAmerica\ncuba\tAmerica\n", "utf-8")
    asked = ["--relation", "embassy", "--labels", labels]
    said = refuse("answer", nations_run, "--head", "America", *asked)
    assert "stands for 2: 'usa', 'cuba'" in said
    said = refuse("answer", nations_run, "--head", "Amerika", *asked)
    assert "Did you mean 'America'?" in said


def test_calibrate_makes_again_what_is_missing_or_stale(
    village_run: Path, tmp_path: Path, command: Callable[..., Any]
):
    run = shutil.copytree(village_run, tmp_path / "run")
    before = (run / "calibration.json").read_bytes()
    (run / "calibration.json").unlink()
    question = ["--head", "v0_ann", "--relation", "parent_of", "--json", "--threads", "1"]

    def kind() -> str:
        printed = command("answer", run, *question).stdout
        return json.loads(printed)["query"]["probability_kind"]

    assert kind() == "model"
    done = command("calibrate", run, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert (run / "calibration.json").read_bytes() == before
    assert kind() == "calibrated"
    stale = json.loads(before) | {"weights_sha256": "0" * 64}
    (run / "calibration.json").write_text(json.dumps(stale), "utf-8")
    assert kind() == "model"


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "calibration.json"), ('{"format_version": 1}', "knowformer calibrate")],
)
def test_a_broken_calibration_is_refused_with_its_remedy(
    content: str, says: str, nations_run: Path, tmp_path: Path, refuse: Refuse
):
    run = shutil.copytree(nations_run, tmp_path / "run")
    (run / "calibration.json").write_text(content, "utf-8")
    assert says in refuse("answer", run, "--head", "usa", "--relation", "embassy")


def test_an_evaluation_judges_the_probabilities_and_draws_them(
    village_run: Path, tmp_path: Path, command: Callable[..., Any]
):
    run = shutil.copytree(village_run, tmp_path / "run")
    evaluate = ["evaluate", run, "--threads", "1", "--json"]
    block = json.loads(command(*evaluate).stdout)["calibration"]
    error = block["expected_calibration_error"]
    assert 0 <= error["after"] < error["before"] <= 1
    assert {"above", "best"} < set(block)
    assert "probabilities above 0.1: " in " ".join(command(*evaluate[:-1]).stdout.split())
    assert block["log_loss"]["after"] < block["log_loss"]["before"]
    assert block["fitted_on"]["test_facts_among_candidates"] == 19
    assert (run / "reliability_test.png").read_bytes().startswith(b"\x89PNG")
    trained = command(*evaluate, "--split", "train")
    assert json.loads(trained.stdout)["calibration"] is None
