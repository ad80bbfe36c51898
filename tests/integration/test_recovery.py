"""Run folders that lost a file, and answers where probabilities end: through the library."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from knowformer import Reasoner, train
from knowformer.errors import BundleError
from knowformer.runs.folder import sole_trainer, update_metrics
from knowformer.training.events import read_events


def test_a_lost_record_does_not_keep_a_run_from_being_resumed(own_family_run: Path):
    weights = (own_family_run / "model.safetensors").read_bytes()
    (own_family_run / "events.jsonl").unlink()
    train(None, own_family_run, resume=True)
    assert read_events(own_family_run / "events.jsonl") == []
    assert (own_family_run / "model.safetensors").read_bytes() == weights


def test_a_record_that_ends_in_the_middle_of_a_line_is_cut_back_to_whole_ones(
    own_family_run: Path,
):
    record = own_family_run / "events.jsonl"
    events = read_events(record)
    assert len(events) > 1
    record.write_bytes(record.read_bytes()[:-10])
    train(None, own_family_run, resume=True)
    assert read_events(record) == events[:-1]


def test_lost_metrics_are_made_again_from_the_checkpoint(own_family_run: Path):
    path = own_family_run / "metrics.json"
    before = json.loads(path.read_text("utf-8"))["best_validation"]
    path.unlink()
    train(None, own_family_run, resume=True)
    again = json.loads(path.read_text("utf-8"))["best_validation"]
    assert again == {key: before[key] for key in ("step", "valid_mrr")}


def test_damaged_metrics_are_named_and_kept(own_family_run: Path):
    path = own_family_run / "metrics.json"
    path.write_text('{"best_validation": {"st', "utf-8")
    with pytest.raises(BundleError, match=r"metrics\.json.*remove it"):
        update_metrics(own_family_run, {"test": {}})
    assert path.read_text("utf-8") == '{"best_validation": {"st'


def test_a_lost_checkpoint_means_starting_over_with_the_same_result(own_family_run: Path):
    weights = (own_family_run / "model.safetensors").read_bytes()
    (own_family_run / "checkpoint.safetensors").unlink()
    train(None, own_family_run, resume=True)
    assert (own_family_run / "model.safetensors").read_bytes() == weights


def test_a_checkpoint_of_other_settings_is_refused(own_family_run: Path):
    config = own_family_run / "config.toml"
    content = config.read_text("utf-8")
    assert "hidden_dim = 16" in content
    config.write_text(content.replace("hidden_dim = 16", "hidden_dim = 32"), "utf-8")
    with pytest.raises(BundleError, match=r"checkpoint\.safetensors.*config\.toml"):
        train(None, own_family_run, resume=True)


def test_what_a_killed_process_left_behind_is_removed_on_resuming(own_family_run: Path):
    left = own_family_run / ".checkpoint.safetensors.0a1b2c3d.partial"
    left.write_bytes(b"half")
    train(None, own_family_run, resume=True)
    assert not left.exists()


@pytest.mark.parametrize("factor", [1.0, 1e3, 1e6])
def test_answers_are_in_order_of_score_even_where_probabilities_are_all_zero_or_one(
    family_run: Path, factor: float
):
    reasoner = Reasoner.from_pretrained(family_run)
    with torch.no_grad():
        last = list(reasoner.model.score_last.parameters())
        for parameter in last:
            parameter.mul_(factor)
    answers = reasoner.answer(head="f0_ann", relation="parent_of", k=32).answers
    scores = [answer.score for answer in answers]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 16
    assert sum(answer.probability for answer in answers) == pytest.approx(1.0, abs=1e-4)


def test_two_processes_do_not_train_in_one_folder(
    own_family_run: Path, refuse: Callable[..., str], installed: Callable[..., object]
) -> None:
    half_written = own_family_run / ".metrics.json.0.partial"
    half_written.write_text("the other process is at it", encoding="utf-8")
    with sole_trainer(own_family_run):
        said = refuse("train", "--resume", "--out", own_family_run, by=installed)
        assert "another process" in said
        assert half_written.exists()
    train(None, own_family_run, resume=True)
    assert not half_written.exists()
    assert not list(own_family_run.glob(".*"))
