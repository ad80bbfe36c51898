import json
from dataclasses import replace
from pathlib import Path

import pytest

from knowformer.data.dataset import Dataset
from knowformer.errors import BundleError, ConfigError
from knowformer.pipeline import train
from knowformer.runs.folder import load_run_dataset
from knowformer.training.clock import Clock
from knowformer.training.settings_file import build_config
from knowformer.tuning.study import Study
from knowformer.tuning.tune import tune

pytest.importorskip("optuna")
TINY = [
    "model.hidden_dim=16",
    "model.num_layers=1",
    "model.num_query_key_hops=1",
    "model.num_value_hops=1",
    "training.max_epochs=1",
    "threads=1",
]
VARY = [
    "training.validation_region=0,0.99",
    "model.dropout=0,0.1",
]  # 0.99 leaves nothing to train on


def without_test_facts(dataset: Dataset) -> Dataset:
    """A copy in which the test facts, and every filter that has them, cannot be read."""
    splits = {name: replace(dataset.split(name)) for name in ("train", "valid", "test")}
    for split in splits.values():
        object.__delattr__(split, "known")
    object.__delattr__(splits["test"], "facts")
    return replace(dataset, **splits)


def test_a_search_never_reads_test_facts_and_goes_on_when_killed(
    ring: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, out = without_test_facts(ring), tmp_path / "search"
    with pytest.raises(AttributeError):
        _ = dataset.test.facts

    def search(trials: int, **options: object):
        return tune(
            dataset, out, max_minutes=20, trials=trials, vary=VARY, assignments=TINY, **options
        )

    calls: list[int] = []

    def killed_in_the_second_trial(dataset: Dataset, folder: Path, **options: object) -> None:
        calls.append(1)
        if len(calls) == 2:  # leaves behind what kill -9 does: a trial that runs
            folder.mkdir()
            raise KeyboardInterrupt
        train(dataset, folder, **options)

    monkeypatch.setattr("knowformer.tuning.tune.train", killed_in_the_second_trial)
    with pytest.raises(KeyboardInterrupt):
        search(3)
    monkeypatch.undo()
    told: list[tuple[int, int]] = []
    result = search(3, on_trial=lambda done, total: told.append((done, total)))
    assert told == [(2, 3), (3, 3)]
    assert len(result.trials) == 3
    first = result.trials[0]
    defaults = {"training.validation_region": "0", "model.dropout": "0.1"}
    assert (first.settings, first.state) == (defaults, "complete")
    for trial in result.trials:
        assert (trial.state == "failed") == (trial.settings["training.validation_region"] == "0.99")
    assert first.num_facts == len(ring.valid.facts)
    assert result.best.state == "complete"
    kept = {path.name for path in (out / "trials").iterdir()}
    complete = [trial for trial in result.trials if trial.state == "complete"]
    assert kept == {f"{trial.number:03}" for trial in complete}  # none of one killed or refused
    assert not len(load_run_dataset(out / "trials" / "000").test.facts)
    best = build_config(file=out / "best.toml")
    assert best.model.dropout == float(result.best.settings["model.dropout"])
    assert best.training.max_minutes is None

    assert search(3).trials == result.trials  # nothing left to do
    with pytest.raises(ConfigError, match="space"):
        tune(dataset, out, max_minutes=20, vary=VARY[:1], assignments=TINY)


def test_no_trial_is_begun_without_time_for_it(ring: Dataset, tmp_path: Path) -> None:
    late = Clock()
    late.add(100.0)
    with pytest.raises(ConfigError, match="max_minutes"):
        tune(ring, tmp_path / "late", max_minutes=1, assignments=TINY, clock=late)
    assert not (tmp_path / "late").exists()

    out = tmp_path / "begun"
    space = {"seed": ["1", "2"]}
    search = {"dataset": ring.name, "settings": TINY, "space": space, "trial_minutes": 0.5}
    out.mkdir()
    (out / "search.json").write_text(json.dumps(search), "utf-8")
    almost = Clock()
    almost.add(45.0)
    with pytest.raises(ConfigError, match="found none"):
        tune(ring, out, max_minutes=1, vary=["seed=1,2"], assignments=TINY, clock=almost)
    assert not Study(out, space, seed=0).trials()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"dataset": 1}', "null"])
def test_a_damaged_search_is_refused_in_a_sentence(
    ring: Dataset, tmp_path: Path, content: str
) -> None:
    (tmp_path / "search.json").write_text(content)
    with pytest.raises(BundleError, match=r"started with in .*search\.json"):
        tune(ring, tmp_path, max_minutes=1, vary=["seed=1,2"], assignments=TINY)
