"""``knowformer reproduce`` as a user types it: list, run, be killed, go on, report."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.conftest import family_triples, write_lines

from knowformer.data.loading import load_dataset
from knowformer_lab import command as lab_command

TINY = """
[settings.model]
hidden_dim = 16
num_heads = 4
num_layers = 1
num_query_key_hops = 1
num_value_hops = 2

[settings.training]
max_epochs = 6
max_valid_facts = 20
checkpoint_minutes = 0
"""


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    write_lines(tmp_path / "family.tsv", family_triples("f", 8))
    folder = tmp_path / "experiments"
    (folder / "inductive").mkdir(parents=True)
    (folder / "theory").mkdir()
    head = 'about = "a test"\n'
    ranking = f'{head}kind = "ranking"\ndataset = "family.tsv"\nseeds = [0, 1]{TINY}'
    (folder / "inductive" / "family.toml").write_text(ranking)
    expressivity = f'{head}kind = "expressivity"\nstudy.num_graphs = 2\n'
    (folder / "theory" / "theorem2.toml").write_text(expressivity)
    return folder


def states(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["experiment"]: row["state"] for row in rows}


def test_list_run_skip_and_report(
    experiments: Path, succeed: Callable[..., str], read_json: Callable[..., Any], tmp_path: Path
):
    at = {"cwd": tmp_path}
    assert set(states(read_json("reproduce", **at)).values()) == {"not yet run"}
    ran = read_json("reproduce", "theory", "inductive/family", "--seed", "1", **at)
    assert [(row["experiment"], row["seed"], row["state"]) for row in ran] == [
        ("theory/theorem2", 1, "done"),
        ("inductive/family", 1, "done"),
    ]
    result = json.loads((tmp_path / ran[1]["result"]).read_text("utf-8"))
    assert result["evaluation"]["realistic"]["mrr"] > 0
    assert not list(tmp_path.rglob("calibration.json")), "time spent on what no figure needs"
    assert states(read_json("reproduce", **at))["inductive/family"] == "partly"
    assert read_json("reproduce", "inductive", "--seed", "1", **at) == []
    assert "partly (1 of 2)" in succeed("reproduce", **at)
    assert "RESULTS.md" in succeed("reproduce", "--report", **at)
    text = (experiments / "RESULTS.md").read_text("utf-8")
    assert f"{result['evaluation']['realistic']['mrr']:.3f}" in text


def test_a_table_killed_in_training_goes_on_and_ends_alike(
    experiments: Path,
    succeed: Callable[..., str],
    start: Callable[..., subprocess.Popen[bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    arguments = ["reproduce", "inductive", "--seed", "0", "--threads", "1"]
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    for folder in (quiet, killed):
        (folder / "inductive").mkdir(parents=True)
        text = (experiments / "inductive" / "family.toml").read_text("utf-8")
        (folder / "inductive" / "family.toml").write_text(text)

    def options(folder: Path) -> list[str]:
        return ["--experiments", str(folder), "--out", str(folder / "runs")]

    monkeypatch.chdir(tmp_path)
    succeed(*arguments, *options(quiet))
    process = start(*arguments, *options(killed))
    deadline = time.monotonic() + 100
    while not list(killed.glob("runs/*/checkpoint.safetensors")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.wait()
    result = Path("results/inductive/family/seed0.json")
    assert not (killed / result).exists()
    succeed(*arguments, *options(killed))
    assert len(list(killed.glob("runs/*/config.toml"))) == 1  # went on, not anew
    one, other = (json.loads((folder / result).read_text("utf-8")) for folder in (quiet, killed))
    assert one["evaluation"]["realistic"] == other["evaluation"]["realistic"]
    assert one["training"]["valid_mrr"] == other["training"]["valid_mrr"]
    assert one["training"]["steps_done"] == other["training"]["steps_done"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reproduce", "inductiv"], "inductive"),
        (["reproduce", "--experiments", "nowhere"], "found none"),
    ],
)
def test_what_is_not_there_is_refused(
    refuse: Callable[..., str],
    experiments: Path,
    tmp_path: Path,
    arguments: list[str],
    said: str,
):
    assert experiments.exists()
    assert said in refuse(*arguments, cwd=tmp_path)


def test_what_answers_attend_to_is_followed_and_a_bad_question_refused(
    experiments: Path, succeed: Callable[..., str], command: Callable[..., Any], tmp_path: Path
):
    dataset = load_dataset(tmp_path / "family.tsv")
    head, relation, _ = dataset.test.facts[0].tolist()
    names = dataset.test.graph.entities.names[head], dataset.relations.names[relation]
    (experiments / "attention").mkdir()
    for name, (asked_head, asked_relation) in {"good": names, "bad": ("utopia", names[1])}.items():
        (experiments / "attention" / f"{name}.toml").write_text(
            'about = "a test"\nkind = "attention"\nlike = "inductive/family"\nseeds = [0]\n'
            f'[[study.questions]]\nhead = "{asked_head}"\nrelation = "{asked_relation}"\n'
        )
    refused = command("reproduce", "attention/bad", cwd=tmp_path)
    assert refused.returncode == 2
    assert "got 'utopia'" in refused.stderr
    assert not (tmp_path / "runs").exists()  # told before any training
    said = succeed("reproduce", "attention/good", "--report", cwd=tmp_path)
    assert "test answers followed" in said
    text = (experiments / "RESULTS.md").read_text("utf-8")
    assert f"({names[0]}, {names[1]}, ?)" in text
    assert "![Attention](pictures/attention.png)" in text


def test_a_missing_data_set_fails_its_run_alone(
    experiments: Path, command: Callable[..., Any], tmp_path: Path
):
    (experiments / "inductive" / "gone.toml").write_text(
        'about = "a test"\nkind = "ranking"\ndataset = "no/such/data"\n'
    )
    done = command("reproduce", "inductive/gone", "theory", cwd=tmp_path)
    assert done.returncode == 2
    assert "no/such/data" in done.stderr
    assert "Traceback" not in done.stderr
    assert "theory/theorem2, seed 0: done" in done.stdout


def test_the_package_offers_the_command_as_a_plugin_and_on_its_own(
    experiments: Path,
    read_json: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["knowformer-lab", "--json"])
    with pytest.raises(SystemExit) as ended:
        lab_command.main()
    assert not ended.value.code
    assert json.loads(capsys.readouterr().out) == read_json("reproduce", cwd=tmp_path)
    assert experiments.exists()
