"""``train RUN --with-live-facts``: what changed while a run was served, in the next training."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from knowformer import Reasoner
from knowformer.live.facts import Change
from knowformer.live.snapshots import STORE_FILE, LiveGraph
from knowformer.runs.folder import load_config

GONE = ("f0_ann", "married_to", "f0_bob")


@pytest.fixture
def changed_run(family_run: Path, tmp_path: Path) -> Path:
    """A run of one's own, with a fact about someone new and without one of its own."""
    run = Path(shutil.copytree(family_run, tmp_path / "run"))
    reasoner = Reasoner.from_pretrained(run, threads=1)
    with closing(LiveGraph.open(reasoner, run / STORE_FILE)) as live:
        live.change([Change("Newcomer", "married_to", "f0_bob"), Change(*GONE, "remove")])
    return run


def test_the_next_training_has_the_facts(
    changed_run: Path, tmp_path: Path, succeed: Callable[..., str]
) -> None:
    out = tmp_path / "next"
    succeed(
        "train", changed_run, "--with-live-facts", "--out", out, "--set", "training.max_epochs=2"
    )
    before, after = (Reasoner.from_pretrained(run, threads=1).graph for run in (changed_run, out))
    assert after.holds([("Newcomer", "married_to", "f0_bob"), GONE]) == [True, False]
    assert len(after.facts) == len(before.facts)
    settings = [load_config(run).model_dump() for run in (changed_run, out)]
    assert [each["training"].pop("max_epochs") for each in settings] == [1, 2]
    assert settings[0] == settings[1]
    answer = succeed("answer", out, "--head", "Newcomer", "--relation", "married_to")
    assert "f0_bob" in answer
    done = succeed(
        "train",
        changed_run,
        "--with-live-facts",
        "--from",
        changed_run,
        "--out",
        tmp_path / "tuned",
    )
    assert "tuned" in done


def test_what_cannot_be_is_refused(
    changed_run: Path, family_file: Path, tmp_path: Path, refuse: Callable[..., str]
) -> None:
    out = tmp_path / "next"
    assert "--out for the run to come" in refuse("train", changed_run, "--with-live-facts")
    said = refuse("train", family_file, "--out", out, "--store", changed_run / STORE_FILE)
    assert "Expected --store together with --with-live-facts" in said
    said = refuse(
        "train", changed_run, "--with-live-facts", "--store", tmp_path / "no", "--out", out
    )
    assert "Expected a store of live facts at" in said
    said = refuse("train", family_file, "--with-live-facts", "--out", out)
    assert f"Expected a run folder with --with-live-facts, got {family_file}." in said
    (changed_run / STORE_FILE).unlink()
    said = refuse("train", changed_run, "--with-live-facts", "--out", out)
    assert f"Expected a store of live facts at {changed_run / STORE_FILE}, found none." in said
