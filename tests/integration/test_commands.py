"""Train, evaluate, answer: the commands as a user types them, and what they leave and print."""

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from safetensors import safe_open

import knowformer
from knowformer.interfaces.app import app
from knowformer.runs import folder as run_folder
from knowformer.training import settings_file

METRIC_NAMES = {"mrr", "mr", "hits@1", "hits@3", "hits@10"}
POLICIES = {"realistic", "optimistic", "pessimistic"}


def read_events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text("utf-8").splitlines()]


def test_a_run_folder_has_the_files_that_the_bundle_names(family_run: Path):
    assert run_folder.__doc__
    named = set(re.findall(r"^([\w.]+\.\w+) ", run_folder.__doc__, flags=re.MULTILINE))
    assert len(named) == 11
    named.add("learning_curve.png")  # in the line of what it is a picture of
    # Six validation facts are too few to fit probabilities on, the weights began at random, and no
    # tracker was asked for.
    missing = {"calibration.json", "initial.safetensors", "tracking.json"}
    assert {path.name for path in family_run.iterdir()} == named - missing


def test_enough_validation_facts_give_a_calibration(nations_run: Path):
    assert (nations_run / "calibration.json").is_file()


def test_no_file_of_a_run_is_a_pickle(family_run: Path):
    for path in family_run.iterdir():
        content = path.read_bytes()
        if path.suffix == ".safetensors":
            with safe_open(path, framework="np") as file:
                assert list(file.keys())
        elif path.suffix == ".png":
            assert content.startswith(b"\x89PNG")
        else:
            assert content.decode("utf-8").isprintable() or b"\n" in content
            assert path.suffix in {".toml", ".json", ".jsonl"}


def test_train_prints_the_run_and_its_best_validation(nations_run: Path):
    run = nations_run
    printed = json.loads((run.parent / "printed.json").read_text("utf-8"))
    assert printed.keys() == {"run", "dataset", "best_validation", "validation_baselines"}
    assert printed["run"] == str(run)
    assert printed["dataset"] == "nations"
    stored = json.loads((run / "metrics.json").read_text("utf-8"))
    assert printed["best_validation"] == stored["best_validation"]
    assert printed["validation_baselines"] == stored["validation_baselines"]
    assert printed["validation_baselines"].keys() == {"rules", "popularity"}
    (validation,) = [event for event in read_events(run) if event["kind"] == "validation"]
    assert printed["best_validation"]["valid_mrr"] == validation["valid_mrr"] > 0


def test_events_have_the_fields_that_scripts_rely_on(nations_run: Path):
    kinds = {event["kind"]: event for event in read_events(nations_run)}
    assert kinds.keys() == {"training", "validation"}
    training, validation = kinds["training"], kinds["validation"]
    assert training.keys() >= {"step", "epoch", "loss", "queries_per_second", "elapsed_seconds"}
    assert validation.keys() >= {"step", "epoch", "valid_mrr", "valid_hits@1", "valid_hits@10"}
    assert training["loss"] > 0
    assert training["queries_per_second"] > 0
    assert 0 < validation["valid_mrr"] <= 1
    assert isinstance(training["step"], int)
    assert isinstance(training["epoch"], int)


def test_settings_are_stored_complete_and_as_given(nations_run: Path):
    config = run_folder.load_config(nations_run)
    assert config.seed == 5
    assert config.threads == 1
    assert (config.model.hidden_dim, config.model.num_heads, config.model.num_layers) == (16, 4, 1)
    assert config.training.batch_size == 64


def test_evaluating_prints_the_promised_shape_and_twice_the_same_numbers(
    village_run: Path, tmp_path: Path, read_json: Callable[..., Any]
):
    run = shutil.copytree(village_run, tmp_path / "run")
    first = read_json("evaluate", run, "--threads", "1")
    named = {"protocol", "head", "tail", *POLICIES}
    assert first.keys() == named | {
        *("categories", "view", "link_prediction", "calibration", "relation_ranks"),
        *("baselines", "seconds", "command"),
    }
    for policy in POLICIES:
        assert first[policy].keys() == METRIC_NAMES
    for side in ("head", "tail"):
        assert first[side].keys() == POLICIES
        assert all(metrics.keys() == METRIC_NAMES for metrics in first[side].values())
    assert first["protocol"]["dataset"] == "village"
    assert first["protocol"]["setting"] == "transductive"
    assert (first["protocol"]["num_facts"], first["protocol"]["num_candidates"]) == (19, 96)
    assert first["optimistic"]["mrr"] >= first["realistic"]["mrr"] >= first["pessimistic"]["mrr"]
    assert first["command"].endswith(f"evaluate {run} --threads 1 --json")
    stored = json.loads((run / "metrics.json").read_text("utf-8"))
    assert stored["test"] == first
    assert "best_validation" in stored

    second = read_json("evaluate", run, "--threads", "1")
    assert second | {"seconds": 0} == first | {"seconds": 0}


def test_the_table_of_an_evaluation_shows_headline_protocol_and_command(
    family_run: Path, tmp_path: Path, succeed: Callable[..., str]
):
    run = shutil.copytree(family_run, tmp_path / "run")
    printed = succeed("evaluate", run, "--split", "valid", "--threads", "1", "--relations", "4")
    stored = json.loads((run / "metrics.json").read_text("utf-8"))["valid"]
    (row,) = [line for line in printed.splitlines() if re.search("model, (realistic|how)", line)]
    shown = re.findall(r"\d+\.\d+", row)
    assert shown[0] == f"{stored['realistic']['mrr']:.3f}"
    assert "family, valid: 6 facts asked both ways, 32 candidates" in printed
    assert stored["relation_ranks"]["num_facts"] == 4
    (row,) = [line for line in printed.splitlines() if "relation asked (4)" in line]
    assert f"{stored['relation_ranks']['both']['mrr']:.3f}" in row
    assert "transductive" in printed
    assert "Do not compare this MRR with that of validation in training" in printed
    assert "made by: " in printed
    assert f"evaluate {run} --split valid" in printed


def test_an_evaluation_by_relation_and_by_fact_adds_up(
    family_run: Path, tmp_path: Path, read_json: Callable[..., Any], succeed: Callable[..., str]
):
    run, ranks = shutil.copytree(family_run, tmp_path / "run"), tmp_path / "ranks.tsv"
    asked = ["evaluate", run, "--by-relation", "--threads", "1"]
    report = read_json(*asked, "--export", ranks)
    mrr = pytest.approx(report["realistic"]["mrr"])
    of_rules = pytest.approx(report["baselines"]["rules"]["realistic"]["mrr"])
    num_asked = sum(row["facts"] for row in report["relations"])
    assert num_asked == 2 * report["protocol"]["num_facts"]
    assert sum(row["facts"] * row["mrr"] for row in report["relations"]) / num_asked == mrr
    with ranks.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == num_asked
    assert sum(1 / float(row["rank"]) for row in rows) / num_asked == mrr
    assert sum(1 / float(row["rules_rank"]) for row in rows) / num_asked == of_rules
    known = run_folder.load_run_dataset(run).test.graph.entities
    assert {row["head"] for row in rows} | {row["tail"] for row in rows} <= set(known)
    printed = succeed(*asked)
    assert "MRR by relation" in printed
    assert "two-hop" in printed


def test_ranks_are_not_computed_for_a_file_that_cannot_be_written(
    family_run: Path, refuse: Callable[..., str]
):
    said = refuse("evaluate", family_run, "--export", "ranks.xlsx")
    assert said == (
        "error: Expected a file name that ends with .parquet, .tsv or .csv, got 'ranks.xlsx'."
    )


def check_answers(printed: Any, *, named: str, count: int) -> list[dict[str, Any]]:
    assert printed.keys() == {"query", "answers"}
    answers: list[dict[str, Any]] = printed["answers"]
    assert len(answers) == count
    for rank, answer in enumerate(answers, start=1):
        more = "share" if named == "relation" else "typical_rank"
        assert answer.keys() == {named, "rank", "score", "probability", "known", more}
        assert answer["rank"] == rank
        assert 0 <= answer["probability"] <= 1
        assert isinstance(answer["known"], bool)
    likely = [answer["share" if named == "relation" else "probability"] for answer in answers]
    assert likely == sorted(likely, reverse=True)
    assert len({answer[named] for answer in answers}) == count
    return answers


def read_facts(path: Path) -> set[tuple[str, ...]]:
    return {tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()}


def test_tails_are_answered_and_known_facts_marked(
    nations_run: Path, read_json: Callable[..., Any]
):
    question = ["--head", "usa", "--relation", "embassy", "--threads", "1"]
    printed = read_json("answer", nations_run, *question, "-k", "14")
    answers = check_answers(printed, named="entity", count=14)
    assert printed["query"] == {
        "head": "usa",
        "relation": "embassy",
        "tail": None,
        "asks_for": "tail",
        "candidates": 14,
        "known": sum(answer["known"] for answer in answers),
        "probability_kind": "calibrated",
        "probability_basis": printed["query"]["probability_basis"],
    }
    assert printed["query"]["probability_basis"]["questions"] > 0
    folder = Path(knowformer.__file__).parent / "data" / "embedded" / "nations"
    facts = set().union(
        *(read_facts(folder / f"{part}.txt") for part in ("train", "valid", "test"))
    )
    known = {answer["entity"] for answer in answers if answer["known"]}
    assert known == {
        tail for head, relation, tail in facts if (head, relation) == ("usa", "embassy")
    }

    new = check_answers(
        read_json("answer", nations_run, *question, "-k", "14", "--new-only"),
        named="entity",
        count=14 - len(known),
    )
    assert [answer["entity"] for answer in new] == [
        answer["entity"] for answer in answers if not answer["known"]
    ]
    assert not any(answer["known"] for answer in new)


def test_heads_are_answered(nations_run: Path, read_json: Callable[..., Any]):
    printed = read_json(
        "answer", nations_run, "--relation", "embassy", "--tail", "usa", "-k", "3", "--threads", "1"
    )
    check_answers(printed, named="entity", count=3)
    assert printed["query"]["head"] is None
    assert printed["query"]["tail"] == "usa"
    assert printed["query"]["asks_for"] == "head"


def test_relations_are_answered(nations_run: Path, read_json: Callable[..., Any]):
    printed = read_json(
        "answer", nations_run, "--head", "usa", "--tail", "uk", "-k", "60", "--threads", "1"
    )
    answers = check_answers(printed, named="relation", count=55)
    assert printed["query"]["asks_for"] == "relation"
    assert 0 < sum(answer["known"] for answer in answers) == printed["query"]["known"]


def test_a_file_of_ones_own_is_split_trained_and_evaluated(
    family_run: Path, read_json: Callable[..., Any], tmp_path: Path
):
    run = shutil.copytree(family_run, tmp_path / "run")
    report = read_json("evaluate", run, "--threads", "1")
    # 64 facts: a tenth for validation, a tenth for test.
    assert report["protocol"]["num_facts"] == 6
    assert report["protocol"]["num_candidates"] == 32
    assert report["protocol"]["dataset"] == "family"
    splits = run_folder.load_run_dataset(run)
    assert [len(part.facts) for part in (splits.train, splits.valid, splits.test)] == [52, 6, 6]


def test_answers_are_shown_as_a_table(family_run: Path, succeed: Callable[..., str]):
    printed = succeed(
        "answer", family_run, "--head", "f0_ann", "--relation", "parent_of", "--threads", "1"
    )
    assert "(f0_ann, parent_of, ?)" in printed
    assert len(re.findall(r"f\d_\w+", printed)) == 11
    assert "32 candidates, 2 of them known" in printed


def test_a_graph_of_new_entities_is_answered_on(
    family_run: Path, unseen_family_file: Path, read_json: Callable[..., Any]
):
    asked = ["--head", "u0_ann", "--relation", "parent_of", "-k", "24"]
    printed = read_json(
        "answer", family_run, *asked, "--graph", unseen_family_file, "--threads", "1"
    )
    answers = check_answers(printed, named="entity", count=24)
    assert all(answer["entity"].startswith("u") for answer in answers)
    assert {answer["entity"] for answer in answers if answer["known"]} == {"u0_cy", "u0_di"}


def test_a_graph_of_new_entities_is_evaluated_as_inductive_and_not_stored_as_the_runs_own(
    family_run: Path, unseen_family_file: Path, read_json: Callable[..., Any]
):
    before = (family_run / "metrics.json").read_bytes()
    report = read_json("evaluate", family_run, "--graph", unseen_family_file, "--threads", "1")
    assert report["protocol"]["dataset"] == "unseen"
    assert report["protocol"]["setting"].startswith("inductive")
    assert report["protocol"]["num_candidates"] == 24
    assert 0 < report["realistic"]["mrr"] <= 1
    assert (family_run / "metrics.json").read_bytes() == before


def test_the_training_graph_given_again_is_not_called_inductive(
    family_run: Path, family_file: Path, read_json: Callable[..., Any]
):
    report = read_json("evaluate", family_run, "--graph", family_file, "--threads", "1")
    assert report["protocol"]["setting"] == "transductive"


def test_names_that_the_terminal_cannot_print_end_no_command(
    family_run: Path,
    tmp_path: Path,
    read_json: Callable[..., Any],
    succeed: Callable[..., str],
    installed: Callable[..., Any],
):
    graph = tmp_path / "new.tsv"
    graph.write_text("日本\tparent_of\tRenée 😀\n:100:\tparent_of\t[b]\n", "utf-8")
    question = ["answer", family_run, "--graph", graph, "--head", "日本", "--relation", "parent_of"]
    names = {"日本", "Renée 😀", ":100:", "[b]"}
    printed = read_json(*question, encoding="ascii")
    assert {answer["entity"] for answer in printed["answers"]} == names
    table = succeed(*question, by=installed, variables={"PYTHONIOENCODING": "ascii"})
    assert r"Ren\xe9e" in table
    assert ":100:" in table
    assert "[b]" in table


def split_lines(folder: Path, lines: list[str]) -> None:
    """Every 8th fact to valid, every 8th to test; the rest to train."""
    folder.mkdir()
    parts: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    for number, line in enumerate(lines):
        parts[{3: "valid", 7: "test"}.get(number % 8, "train")].append(line)
    for name, part in parts.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), "utf-8")


def test_a_pair_of_folders_trains_on_one_graph_and_is_tested_on_the_other(
    family_file: Path,
    unseen_family_file: Path,
    tmp_path: Path,
    read_json: Callable[..., Any],
    tiny: list[str],
):
    split_lines(tmp_path / "kin", family_file.read_text("utf-8").splitlines())
    split_lines(tmp_path / "kin_ind", unseen_family_file.read_text("utf-8").splitlines())
    trained = read_json("train", tmp_path / "kin", "--out", tmp_path / "run", *tiny)
    assert trained["dataset"] == "kin"
    report = read_json("evaluate", tmp_path / "run", "--threads", "1")
    protocol = report["protocol"]
    assert protocol["setting"].startswith("inductive")
    assert (protocol["num_facts"], protocol["num_candidates"]) == (6, 24)
    dataset = run_folder.load_run_dataset(tmp_path / "run")
    assert not set(dataset.train.graph.entities) & set(dataset.test.graph.entities)


def test_a_run_folder_is_named_after_the_graph_when_none_is_given_and_oddly_named_ones_are_shown(
    family_file: Path, tmp_path: Path, succeed: Callable[..., str], tiny: list[str]
):
    graph = tmp_path / "kin [1] :100:.tsv"
    shutil.copyfile(family_file, graph)
    printed = succeed("train", graph, *tiny, cwd=tmp_path)
    assert "Run folder: runs/kin [1] :100:\n" in printed
    assert (tmp_path / "runs" / "kin [1] :100:" / "model.safetensors").is_file()


def test_the_catalogue_is_listed_with_counts(
    read_json: Callable[..., Any], succeed: Callable[..., str]
):
    rows = {row["name"]: row for row in read_json("datasets")}
    nations = rows["nations"]
    assert (nations["entities"], nations["relations"]) == (14, 55)
    assert nations["facts"] == {"train": 1592, "valid": 199, "test": 201}
    assert nations["embedded"] is True
    assert rows["wn18rr"]["folder"] is None  # the test's cache is empty
    table = succeed("datasets")
    assert all(name in table for name in rows)


def test_an_embedded_data_set_is_found_and_verified(succeed: Callable[..., str]):
    printed = succeed("datasets", "get", "nations")
    folder = Path(printed.strip().removeprefix("nations: verified in "))
    assert sorted(path.name for path in folder.iterdir()) == ["test.txt", "train.txt", "valid.txt"]


def command_names() -> list[str]:
    """Every command and subcommand there is, so that a new one cannot be forgotten."""
    group = typer.main.get_command(app)
    names: list[str] = []
    for name, member in group.commands.items():  # pyright: ignore[reportAttributeAccessIssue]
        names += [name, *(f"{name} {inner}" for inner in getattr(member, "commands", {}))]
    return names


def test_help_of_the_command_names_every_command(succeed: Callable[..., str]):
    printed = succeed("--help")
    assert "Usage: knowformer" in printed
    assert all(name in printed for name in command_names() if " " not in name)


@pytest.mark.parametrize("name", command_names())
def test_help_is_offered_by_every_command(name: str, succeed: Callable[..., str]):
    assert f"Usage: knowformer {name}" in succeed(*name.split(), "--help")


def test_the_version_is_printed_by_a_process_of_its_own_too(
    succeed: Callable[..., str], installed: Callable[..., Any]
):
    version = f"knowformer {knowformer.__version__}\n"
    assert succeed("--version") == succeed("--version", by=installed) == version


def test_importing_the_library_is_silent_and_leaves_out_what_only_commands_need():
    program = (
        "import sys; from knowformer import Reasoner, train; "
        "heavy = {'matplotlib', 'typer', 'rich', 'pooch'} & set(sys.modules); "
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_train_says_which_recommended_settings_it_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., Any],
    tiny: list[str],
):
    advised = {"nations": {"model": {"num_random_features": 5, "hidden_dim": 32}}}
    monkeypatch.setattr(settings_file, "_recommended", lambda: advised)
    taken = tmp_path / "run"
    taken.write_text("")  # no folder: the settings are told before anything is written
    done = command("train", "nations", "--out", taken, *tiny)
    assert done.returncode == 2
    # The width was given explicitly, so it wins and is not spoken of.
    note = "note: settings recommended for nations: model.num_random_features = 5\n"
    assert note in done.stderr
