"""Bad input: exit code 2, one sentence, nothing half-written.

The fixture ``refuse`` checks all that; a test adds what the sentence must say.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

Refuse = Callable[..., str]

GOOD = "ann\tparent_of\tben\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


# Triples files


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        pytest.param(b"", ["empty file", "head<TAB>relation<TAB>tail"], id="empty"),
        pytest.param(
            GOOD.encode() + b"ann\tben\n",
            ["3 tab-separated", "got 2", "kin.tsv:2."],
            id="2 columns",
        ),
        pytest.param(
            GOOD.encode() + b"\nann\tparent\tof\tben\n",
            ["got 4", "kin.tsv:3.", "must not contain a tab"],
            id="a tab in a name",
        ),
        pytest.param(
            GOOD.encode() * 2 + b"ann\tparent_of\tb\xe9n\n",
            ["UTF-8", "0xe9", "kin.tsv:3."],
            id="not UTF-8",
        ),
        pytest.param(b"\n \n\r\n", ["empty file"], id="blank lines alone"),
        pytest.param(
            b"ann\t \tben\n", ["relation", "empty", "kin.tsv:1."], id="a nameless relation"
        ),
        pytest.param(GOOD.encode(), ["enough facts", "got 1", "valid.txt"], id="a single fact"),
        pytest.param(GOOD.encode("utf-16"), ["UTF-8 text, got UTF-16", "kin.tsv."], id="UTF-16"),
    ],
)
def test_a_bad_triples_file_is_refused_with_its_place(
    content: bytes, parts: list[str], tmp_path: Path, out: Path, refuse: Refuse
):
    graph = tmp_path / "kin.tsv"
    graph.write_bytes(content)
    said = refuse("train", graph, "--out", out)
    assert str(graph) in said
    assert all(part in said for part in parts), said


def write_folder(folder: Path, **parts: str) -> Path:
    folder.mkdir()
    for name, content in parts.items():
        (folder / f"{name}.txt").write_text(content, "utf-8")
    return folder


def test_a_relation_of_test_alone_is_refused(tmp_path: Path, out: Path, refuse: Refuse):
    folder = write_folder(tmp_path / "kin", train=GOOD, valid=GOOD, test="ann\tparents_of\tben\n")
    said = refuse("train", folder, "--out", out)
    assert "'parents_of'" in said
    assert str(folder / "test.txt") in said
    assert "Did you mean 'parent_of'?" in said


def test_a_folder_without_train_is_refused(tmp_path: Path, out: Path, refuse: Refuse):
    folder = write_folder(tmp_path / "kin", valid=GOOD, test=GOOD)
    assert f"{folder / 'train.txt'}, found none" in refuse("train", folder, "--out", out)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path, out: Path, refuse: Refuse):
    assert "found nothing at" in refuse("train", tmp_path / "kin.tsv", "--out", out)


def test_a_misspelt_data_set_is_refused_with_a_suggestion(
    tmp_path: Path, out: Path, refuse: Refuse
):
    said = refuse("train", "natoins", "--out", out, cwd=tmp_path)
    assert "Did you mean 'nations'?" in said
    assert "knowformer datasets" in said


def test_a_misspelt_data_set_cannot_be_fetched(refuse: Refuse):
    assert "Did you mean 'kinship'?" in refuse("datasets", "get", "kinships")


def test_a_name_longer_than_the_file_system_allows_is_refused(out: Path, refuse: Refuse):
    """Stands for every path that cannot even be looked at, such as one in a forbidden folder."""
    assert "File name too long" in refuse("train", "x" * 300, "--out", out)


# Settings


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        pytest.param(
            "[model]\nhiden_dim = 8\n", ["'model.hiden_dim'", "'model.hidden_dim'"], id="typo"
        ),
        pytest.param("model: {hidden_dim: 8}\n", ["TOML", "line 1"], id="not TOML"),
        pytest.param("[modle]\nhidden_dim = 8\n", ["'modle'", "model"], id="typo in a table"),
        pytest.param("hidden_dim = 8\n", ["Did you mean 'model.hidden_dim'?"], id="no table"),
        pytest.param("[model]\nhidden_dim = 'wide'\n", ["integer", "'wide'"], id="not a number"),
    ],
)
def test_a_bad_configuration_is_refused_with_its_place(
    content: str, parts: list[str], tmp_path: Path, out: Path, refuse: Refuse
):
    config = tmp_path / "settings.toml"
    config.write_text(content, "utf-8")
    said = refuse("train", "nations", "--out", out, "--config", config)
    assert str(config) in said
    assert all(part in said for part in parts), said


def test_a_configuration_that_is_not_there_is_refused(tmp_path: Path, out: Path, refuse: Refuse):
    config = tmp_path / "settings.toml"
    assert f"{config}, found none" in refuse("train", "nations", "--out", out, "--config", config)


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("model.num_heads=3", ["num_heads must divide", "3 heads", "width 32"]),
        ("training.learning_rate=-0.1", ["training.learning_rate", "greater than 0", "-0.1"]),
        ("model.hidden_dim", ["key=value", "'model.hidden_dim'"]),
        ("training.learning_rate=inf", ["training.learning_rate", "finite", "inf"]),
        ("training.loss=binry", ["'cross_entropy', 'binary' or 'pairs'", "'binry'"]),
        ("training.max_epoch=3", ["'training.max_epoch'", "'training.max_epochs'"]),
        ("=3", ["key=value", "'=3'"]),
    ],
)
def test_an_impossible_setting_is_refused(
    setting: str, parts: list[str], out: Path, refuse: Refuse
):
    said = refuse("train", "nations", "--out", out, "--set", setting)
    assert all(part in said for part in parts), said


# Run folders


def test_a_run_folder_that_is_not_there_is_refused_by_a_process_of_its_own_too(
    tmp_path: Path, refuse: Refuse, installed: Callable[..., object]
):
    said = refuse("evaluate", tmp_path / "run")
    assert str(tmp_path / "run") in said
    assert "knowformer train" in said
    assert refuse("evaluate", tmp_path / "run", by=installed) == said


def test_a_run_folder_in_use_is_refused(
    own_family_run: Path, family_file: Path, refuse: Refuse, tiny: list[str]
):
    said = refuse("train", family_file, "--out", own_family_run, *tiny)
    assert str(own_family_run) in said
    assert "--resume" in said


def test_resuming_with_other_settings_is_refused_and_names_the_first(
    own_family_run: Path, family_file: Path, refuse: Refuse, tiny: list[str]
):
    other = ["--set", "training.learning_rate=0.001"]
    said = refuse("train", family_file, "--out", own_family_run, "--resume", *tiny, *other)
    assert "training.learning_rate = 0.005, got 0.001" in said


def test_resuming_on_another_graph_is_refused(
    own_family_run: Path, unseen_family_file: Path, refuse: Refuse
):
    said = refuse("train", unseen_family_file, "--out", own_family_run, "--resume")
    assert "(family), got others (unseen)" in said


def test_resuming_where_there_is_no_run_is_refused(tmp_path: Path, out: Path, refuse: Refuse):
    # Not even when the working folder looks like a data set.
    write_folder(tmp_path / "kin", train=GOOD, valid=GOOD, test=GOOD)
    said = refuse("train", "--resume", "--out", out, cwd=tmp_path / "kin")
    assert f"a run to go on with in {out}" in said


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    "name", ["model.safetensors", "facts.safetensors", "dataset.json", "config.toml"]
)
def test_a_run_with_a_truncated_file_is_refused(name: str, own_family_run: Path, refuse: Refuse):
    cut_in_half(own_family_run / name)
    said = refuse("answer", own_family_run, "--head", "f0_ann", "--relation", "parent_of")
    assert str(own_family_run / name) in said
    assert name != "model.safetensors" or "damaged" in said


def test_a_run_without_its_facts_is_refused(own_family_run: Path, refuse: Refuse):
    (own_family_run / "facts.safetensors").unlink()
    said = refuse("evaluate", own_family_run)
    assert f"facts.safetensors in {own_family_run}, found none" in said


def test_a_run_without_weights_is_refused_and_says_how_to_go_on(
    own_family_run: Path, refuse: Refuse
):
    (own_family_run / "model.safetensors").unlink()
    said = refuse("evaluate", own_family_run)
    assert f"knowformer train --resume {own_family_run}" in said


def test_a_truncated_checkpoint_is_refused(own_family_run: Path, refuse: Refuse):
    cut_in_half(own_family_run / "checkpoint.safetensors")
    said = refuse("train", "--resume", "--out", own_family_run)
    assert str(own_family_run / "checkpoint.safetensors") in said
    assert "damaged" in said


# Questions


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        pytest.param(
            ["--head", "f0_anne", "--relation", "parent_of"],
            ["32 entity names", "'f0_anne'", "'f0_ann'"],
            id="unknown entity",
        ),
        pytest.param(
            ["--head", "f0_ann", "--relation", "owns"],
            ["3 relation names", "'owns'", "married_to", "parent_of", "sibling_of"],
            id="unknown relation",
        ),
        pytest.param([], ["two of --head, --relation and --tail", "nothing to ask"], id="none"),
        pytest.param(["--head", "f0_ann"], ["--queries", "--head alone"], id="one"),
        pytest.param(
            ["--head", "f0_ann", "--relation", "parent_of", "--tail", "f0_cy"],
            ["got all three", "knowformer explain"],
            id="three",
        ),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(
    question: list[str], parts: list[str], family_run: Path, refuse: Refuse
):
    said = refuse("answer", family_run, *question, "--threads", "1")
    assert all(part in said for part in parts), said


@pytest.mark.parametrize(
    "asking", [["answer", "--head", "u1", "--relation", "parent_of"], ["evaluate"]]
)
def test_a_graph_with_an_unknown_relation_is_refused_and_names_it(
    asking: list[str], family_run: Path, tmp_path: Path, refuse: Refuse
):
    graph = tmp_path / "new.tsv"
    facts = [f"u{i}\tparent_of\tu{i + 1}" for i in range(30)] + ["u1\tmaried_to\tu7"]
    graph.write_text("\n".join(facts), "utf-8")
    name, *asked = asking
    said = refuse(name, family_run, *asked, "--graph", graph, "--threads", "1")
    assert "'maried_to'" in said
    assert str(graph) in said
    assert "Did you mean 'married_to'?" in said


# Places that cannot be written


@pytest.mark.parametrize(
    ("below", "parts"),
    [("", []), ("run", ["occupied/run", "Not a directory"]), ("deep/run", [])],
)
def test_a_run_folder_on_top_of_or_under_a_file_is_refused(
    below: str,
    parts: list[str],
    tmp_path: Path,
    family_file: Path,
    refuse: Refuse,
    tiny: list[str],
):
    occupied = tmp_path / "occupied"
    occupied.write_text("mine\n", "utf-8")
    said = refuse("train", family_file, "--out", occupied / below, *tiny)
    assert all(part in said for part in [str(occupied), *parts]), said


def test_a_run_folder_whose_name_is_too_long_is_refused(
    tmp_path: Path, family_file: Path, refuse: Refuse, tiny: list[str]
):
    said = refuse("train", family_file, "--out", tmp_path / ("x" * 300), *tiny)
    assert "File name too long" in said
