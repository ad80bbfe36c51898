"""Runs on a small graph: what is missing runs once, what is stored is complete."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from bench import RING, TINY, Bench, WriteExperiment
from knowformer import reasoner
from knowformer.data.dataset import Split
from knowformer.errors import KnowformerError
from knowformer.evaluation import evaluate as evaluation
from knowformer.evaluation import link_prediction
from knowformer.scoring.scorer import Scorer
from knowformer.storage.tensor_files import read_tensors
from knowformer.storage.triples_io import NamedTriple
from knowformer_lab.results import Result
from knowformer_lab.studies import kinds


def test_a_result_is_complete_and_experiments_share_a_training(bench: Bench) -> None:
    outcomes = bench.run("inductive/one", "selection/one", "search/one")
    assert [outcome.state for outcome in outcomes] == ["done"] * 4
    folders = sorted(p.name for p in (bench.folder.parent / "runs").iterdir() if p.is_dir())
    assert len(folders) == 2  # one per seed
    result = bench.store.read(bench.experiments["inductive/one"], 0)
    assert result is not None
    assert result.evaluation is not None
    assert result.training is not None
    assert result.evaluation.realistic["mrr"] > 0.05
    assert result.evaluation.command == result.command
    assert result.command == "knowformer reproduce inductive/one --seed 0"
    assert result.training.stopped_by == "epochs"
    assert (result.training.epochs_done, len(result.training.validations)) == (2, 2)
    assert result.training.run == folders[0]
    assert result.peak_memory_mib > 50
    assert result.dataset_sha256 is not None
    assert len(result.dataset_sha256) == 64
    assert result.config["model"]["hidden_dim"] == 16
    assert {"versions", "commit", "hardware"} <= result.environment.keys()
    stored = bench.store.path(bench.experiments["inductive/one"], 0).read_text("utf-8")
    assert str(bench.folder) not in stored  # no path of the machine


def test_what_is_done_is_skipped_and_changed_settings_run_again(
    bench: Bench, write_experiment: WriteExperiment
) -> None:
    assert len(bench.run("inductive/one")) == 2
    assert bench.run("inductive/one") == []
    assert bench.store.state(bench.experiments["inductive/one"]) == "done"
    write_experiment(
        "inductive/one",
        f'kind = "ranking"\ndataset = "{RING}"\nseeds = [0, 1]{TINY}learning_rate = 0.001\n',
    )
    changed = Bench(bench.folder)
    experiment = changed.experiments["inductive/one"]
    assert changed.store.state(experiment) == "outdated"
    assert changed.store.all_current(experiment) == []
    assert len(changed.runner.missing([experiment])) == 2
    assert [task.seed for task in changed.runner.missing([experiment], [7])] == [7]


def test_selection_ranks_every_validation_and_then_lets_the_weights_go(bench: Bench) -> None:
    bench.run("inductive/one")
    (run,) = (bench.folder.parent / "runs").glob("ring.tsv-seed0-*")
    kept = sorted((run / "validations").iterdir())
    assert len(kept) == 2
    assert not list((bench.folder.parent / "runs").glob("ring.tsv-seed1-*/validations"))
    weights, _ = read_tensors(kept[-1])
    chosen, _ = read_tensors(run / "model.safetensors")
    bench.run("selection/one")
    result = bench.store.read(bench.experiments["selection/one"], 0)
    plain = bench.store.read(bench.experiments["inductive/one"], 0)
    assert result is not None
    assert plain is not None
    assert result.study is not None
    assert result.evaluation is not None
    assert plain.evaluation is not None
    points = result.study["points"]
    assert [point["epoch"] for point in points] == [1, 2]
    assert result.study["best_on_test_mrr"] == max(point["test_mrr"] for point in points)
    assert result.study["chosen_mrr"] == plain.evaluation.mrr
    assert result.study["leak"] >= 0
    assert not (run / "validations").exists()
    assert plain.training is not None
    if plain.training.chosen_step == points[-1]["step"]:
        assert all(torch.equal(weights[name], chosen[name]) for name in chosen)


def test_a_training_whose_weights_are_gone_is_made_anew_for_selection(bench: Bench) -> None:
    bench.run("inductive/one", "selection/one")
    bench.store.path(bench.experiments["selection/one"], 0).unlink()
    (outcome,) = bench.run("selection/one")
    assert outcome.state == "done"
    assert len(list((bench.folder.parent / "runs").glob("ring.tsv-seed0-*"))) == 2


def test_the_validation_kind_cannot_evaluate(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("test facts were asked for")

    for module in (evaluation, reasoner, kinds):
        monkeypatch.setattr(module, "evaluate", refuse)
    (outcome,) = bench.run("search/one")
    assert outcome.result is not None
    assert outcome.result.evaluation is None
    assert outcome.result.study is None
    with pytest.raises(AssertionError, match="test facts were asked for"):
        bench.run("inductive/one")  # the trap works


@pytest.mark.parametrize("one_relation", [False, True])
def test_the_validation_kind_gives_the_same_with_other_test_facts(
    one_relation: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    write_experiment: WriteExperiment,
    experiments_folder: Path,
    ring_triples: list[NamedTriple],
    write_triples: Callable[[Path, Sequence[NamedTriple]], Path],
) -> None:
    if one_relation:
        ring_triples = list({(h, t): (h, "link", t) for h, _, t in ring_triples}.values())
    train, valid, test = ring_triples[:24], ring_triples[24:28], ring_triples[28:]
    assert len(test) > 1
    # Other test facts of the same names, so that names are numbered as before.
    tails = [t for _, _, t in test]
    others = [(h, r, t) for (h, r, _), t in zip(test, [*tails[1:], tails[0]], strict=True)]
    for name, asked in (("true", test), ("false", others)):
        folder = tmp_path / "data" / name / "ring"
        for part, triples in (("train", train), ("valid", valid), ("test", asked)):
            write_triples(folder / f"{part}.txt", triples)
        write_experiment(f"search/{name}", f'kind = "validation"\ndataset = "{folder}"{TINY}')
    known: list[object] = []

    def predict_links(scorer: Scorer, split: Split, *, seed: int) -> object:
        known.append(split.known.tolist())  # no pair that is drawn may depend on a test fact
        return link_prediction.predict_links(scorer, split, seed=seed)

    monkeypatch.setattr(kinds, "predict_links", predict_links)
    records: list[dict[str, object]] = []
    bench = Bench(experiments_folder)
    for outcome in bench.run("search/true", "search/false"):
        assert outcome.result is not None
        assert outcome.result.training is not None
        record = outcome.result.training.model_dump(mode="json")
        for key in ("run", "minutes", "queries_per_second", "peak_memory_mib"):
            del record[key]
        for point in record["validations"]:
            del point["minutes"]
        assert (outcome.result.study is not None) == one_relation  # then AUROC is measured as well
        records.append({**record, "study": outcome.result.study})
    assert records[0] == records[1]
    assert len(known) == (2 if one_relation else 0)
    assert known[:1] == known[1:]


def test_the_budget_ends_a_training_and_the_next_call_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 0.0, 1e9])
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: next(clock, 1e9))
        outcomes = bench.run("inductive/one", max_minutes=1)
    assert [outcome.state for outcome in outcomes] == ["out of time", "out of time"]
    (run,) = [p for p in (bench.folder.parent / "runs").iterdir() if p.is_dir()]
    assert not (run / "training_record.json").exists()
    assert [outcome.state for outcome in bench.run("inductive/one")] == ["done", "done"]
    assert (run / "training_record.json").exists()


def test_one_that_fails_or_is_busy_does_not_stop_the_others(
    bench: Bench, write_experiment: WriteExperiment
) -> None:
    write_experiment("inductive/gone", 'kind = "ranking"\ndataset = "nowhere/data"')
    bench = Bench(bench.folder)
    bench.run("search/one")
    (lock,) = (bench.folder.parent / "runs").glob(".ring.tsv-seed0-*.lock")
    with FileLock(lock):
        outcomes = bench.run("inductive/gone", "inductive/one")
    assert [outcome.state for outcome in outcomes] == ["failed", "busy", "done"]
    assert isinstance(outcomes[0].error, KnowformerError)


def test_a_damaged_result_is_named(bench: Bench) -> None:
    path = bench.store.path(bench.experiments["inductive/one"], 0)
    path.parent.mkdir(parents=True)
    path.write_text("{", "utf-8")
    with pytest.raises(KnowformerError, match=r"seed0\.json"):
        bench.run("inductive/one")


def test_a_result_survives_its_json(bench: Bench) -> None:
    (outcome,) = bench.run("search/one")
    assert outcome.result is not None
    text = json.dumps(outcome.result.model_dump(mode="json"))
    assert Result.model_validate_json(text) == outcome.result
