"""``knowformer explain`` as a user types it, on a rule that a small model learns."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from knowformer.reasoner import Reasoner
from knowformer.storage.triples_io import NamedTriple

from .conftest import make_once

Refuse = Callable[..., str]

LEARNS = [
    *("--set", "model.hidden_dim=16", "--set", "model.num_layers=1", "--set", "model.num_heads=4"),
    *("--set", "training.max_epochs=25", "--set", "training.batch_size=8", "--threads", "1"),
]


@pytest.fixture(scope="session")
def ring_run(
    tmp_path_factory: pytest.TempPathFactory,
    ring_triples: list[NamedTriple],
    write_triples: Callable[[Path, Sequence[NamedTriple]], Path],
    succeed: Callable[..., str],
    installed: Callable[..., object],
) -> Path:
    """A run that has learnt that ``skip`` is two steps of ``next``."""

    def make(folder: Path) -> None:
        triples = [
            *ring_triples,
            ("nowhere", "next", "elsewhere"),
            ("nowhere", "skip", "elsewhere"),
        ]
        graph = write_triples(folder / "ring.tsv", triples)
        names = "".join(f"place{number:02d}\tPlace {number}\n" for number in range(16))
        (folder / "names.tsv").write_text(names, "utf-8")
        # Many steps: in a process of its own no shape is checked, and it is done sooner.
        succeed("train", graph, "--out", folder / "run", *LEARNS, by=installed)

    return make_once(tmp_path_factory, "ring_run", make) / "run"


FACT = ("--head", "place03", "--relation", "skip", "--tail", "place05")


def test_the_rule_is_named_and_removing_it_costs_more_than_chance(
    ring_run: Path, read_json: Callable[..., Any]
) -> None:
    printed = read_json("explain", ring_run, *FACT)
    assert printed["fact_hidden"]  # the ring holds it
    steps = [(s["start"], s["relation"], s["end"]) for s in printed["paths"][0]["steps"]]
    assert steps == [("place03", "next", "place04"), ("place04", "next", "place05")]
    paths = printed["faithfulness"][0]
    assert paths["evidence"] == "paths"
    at_random = [loss["log_odds"] for loss in paths["random"]]
    assert paths["loss"]["log_odds"] > max(at_random)
    assert printed["standing"]["rank"] == 1
    assert len(printed["heads"]) == 4


def test_text_is_readable_at_a_glance_and_uses_labels(
    ring_run: Path, succeed: Callable[..., str], tmp_path: Path
) -> None:
    names = ring_run.parent / "names.tsv"
    printed = succeed(
        *("explain", ring_run, "--head", "Place 3", "--relation", "skip", "--tail", "Place 5"),
        *("--labels", names, "--by-head", "-k", "2", "--prototypes", "3"),
        *("--picture", tmp_path / "why.svg"),
    )
    assert "(Place 3, skip, ?) Place 5" in printed
    assert "Place 3 —next→ Place 4 —next→ Place 5" in printed
    assert "its paths (" in printed
    assert "carry the answer" in printed
    assert "any attention" in printed
    assert "Most attended in each layer and head" in printed
    assert f"Picture: {tmp_path / 'why.svg'}" in printed
    assert b"Place 4" in (tmp_path / "why.svg").read_bytes()


def test_an_example_is_a_test_fact_that_the_model_finds_without_it(
    ring_run: Path, succeed: Callable[..., str], read_json: Callable[..., Any]
) -> None:
    shown = read_json("explain", ring_run, "--example")
    assert shown["standing"]["rank"] == 1
    assert not shown["fact_hidden"]  # the model reasons from training facts alone
    dataset = Reasoner.from_pretrained(ring_run).dataset
    names, relations = dataset.test.graph.entities.names, dataset.relations.names
    held_out = [(names[h], relations[r], names[t]) for h, r, t in dataset.test.facts.tolist()]
    assert (shown["head"], shown["relation"], shown["tail"]) in held_out
    printed = succeed("explain", ring_run, "--example")
    assert printed.startswith(f"Of {len(held_out)} test facts, hidden from the model, it ranks")


def test_a_question_for_the_head_walks_the_other_way(
    ring_run: Path, read_json: Callable[..., Any]
) -> None:
    printed = read_json("explain", ring_run, *FACT, "--asks-for", "head")
    first = printed["paths"][0]["steps"][0]
    assert (first["start"], first["backwards"]) == ("place05", True)


def test_an_answer_out_of_reach_is_told(ring_run: Path, read_json: Callable[..., Any]) -> None:
    printed = read_json(
        *("explain", ring_run, "--head", "place03", "--relation", "skip", "--tail", "elsewhere")
    )
    assert printed["paths"] == []
    assert printed["no_paths"] == "No path of facts leads from place03 to elsewhere."


def test_on_another_graph_entities_are_new(
    ring_run: Path, tmp_path: Path, read_json: Callable[..., Any]
) -> None:
    (tmp_path / "new.tsv").write_text("x\tnext\ty\ny\tnext\tz\nz\tnext\tw\n", "utf-8")
    fact = ("--head", "x", "--relation", "skip", "--tail", "z")
    printed = read_json("explain", ring_run, *fact, "--graph", tmp_path / "new.tsv")
    assert not printed["fact_hidden"]
    ends = [[step["end"] for step in path["steps"]] for path in printed["paths"]]
    assert ["y", "z"] in ends


def test_a_test_set_is_reported_with_intervals_and_a_picture(
    ring_run: Path, tmp_path: Path, read_json: Callable[..., Any], succeed: Callable[..., str]
) -> None:
    curves = tmp_path / "curves.png"
    printed = read_json("explain", ring_run, "--test-set", "4", "--picture", curves)
    assert printed["num_predictions"] == 4
    assert printed["command"].endswith(f"--test-set 4 --picture {curves} --json")
    (deletion,) = [
        curve
        for curve in printed["curves"]
        if (curve["evidence"], curve["mode"], curve["measure"]) == ("paths", "deletion", "log_odds")
    ]
    assert deletion["points"][-1]["difference"] > 0
    assert curves.read_bytes().startswith(b"\x89PNG")
    shown = succeed("explain", ring_run, "--test-set", "2")
    assert "2 test predictions explained" in shown
    assert "made by: " in shown


def test_python_gives_the_same_explanation(ring_run: Path, read_json: Callable[..., Any]) -> None:
    reasoner = Reasoner.from_pretrained(ring_run, threads=1)
    found = reasoner.explain(head="place03", relation="skip", tail="place05")
    printed = read_json("explain", ring_run, *FACT, "--threads", "1")
    assert json.loads(found.model_dump_json()) | {"seconds": 0} == printed | {"seconds": 0}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        pytest.param([], ["--head", "--relation", "--tail", "--test-set N"], id="nothing"),
        pytest.param(FACT[:4], ["no --tail"], id="no tail"),
        pytest.param([*FACT, "--test-set", "3"], ["more than one"], id="both"),
        pytest.param(["--test-set", "0"], ["positive number", "got 0"], id="no predictions"),
        pytest.param([*FACT, "-k", "0"], ["positive number of paths", "got 0"], id="no paths"),
        pytest.param([*FACT, "--picture", "a.gif"], [".svg, .png, .pdf", "a.gif"], id="a gif"),
        pytest.param([*FACT, "--labels", "no.tsv"], ["no.tsv"], id="no labels"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_sentence(
    ring_run: Path, arguments: list[str], parts: list[str], refuse: Refuse
) -> None:
    said = refuse("explain", ring_run, *arguments)
    assert all(part in said for part in parts), said


@pytest.mark.parametrize(
    ("place", "name", "parts"),
    [
        (1, "plaice03", ["entity", "'plaice03'", "Did you mean 'place03'"]),
        (3, "skp", ["relation", "'skp'", "skip"]),
        (5, "nobody", ["entity", "'nobody'"]),
    ],
    ids=["head", "relation", "tail"],
)
def test_an_unknown_name_is_refused_with_near_spellings(
    ring_run: Path, place: int, name: str, parts: list[str], refuse: Refuse
) -> None:
    fact = list(FACT)
    fact[place] = name
    said = refuse("explain", ring_run, *fact)
    assert all(part in said for part in parts), said
