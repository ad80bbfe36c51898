import json
from pathlib import Path
from typing import Any

import pytest

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError
from knowformer.graph.inverse import num_with_inverses
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.runs.continuing import continue_run
from knowformer.runs.folder import CHECKPOINT_FILE, load_config, start_run, write_json
from knowformer.seeding import generator
from knowformer.training.checkpoint import Counters, read_counters, save_checkpoint
from knowformer.training.config import RunConfig
from knowformer.training.optimizer import build_optimizer
from knowformer.training.settings_file import merge_settings, parse_config

BEST = {"step": 9, "valid_mrr": 0.5}


def config_of(**settings: Any) -> RunConfig:
    model = {"hidden_dim": 8, "num_layers": 1, "view_size": 0}
    training = {"batch_size": 4, "max_epochs": 2}
    wanted: dict[str, Any] = {"model": model, "training": training}
    merge_settings(wanted, settings)
    return parse_config(wanted, where="test")


@pytest.fixture
def run(tmp_path: Path, ring: Dataset) -> Path:
    """A finished run: two epochs of ten steps, which took a minute."""
    config = config_of()
    start_run(tmp_path, config, ring)
    model = KnowFormer(config.model, num_with_inverses(len(ring.relations)))
    initialize(model, generator=generator(0, "init"))
    counters = Counters(step=20, steps_per_epoch=10, elapsed_seconds=60.0, finished=True)
    optimizer = build_optimizer(model, config.training)
    save_checkpoint(tmp_path / CHECKPOINT_FILE, model, optimizer, {}, counters)
    write_json(tmp_path / "metrics.json", {"best_validation": BEST, "test": {"mrr": 0.5}})
    (tmp_path / "calibration.json").write_text("{}")
    return tmp_path


def test_a_run_goes_on_with_its_own_settings(run: Path) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert continue_run(run, None) == continue_run(run, config_of()) == load_config(run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_what_changes_no_result_may_change_and_a_finished_run_stays_so(run: Path) -> None:
    assert continue_run(run, config_of(threads=3)).threads == load_config(run).threads == 3
    assert read_counters(run / CHECKPOINT_FILE).finished
    assert (run / "calibration.json").exists()


def test_other_settings_are_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.hidden_dim = 8, got 16"):
        continue_run(run, config_of(model={"hidden_dim": 16}))


def test_more_epochs_begin_a_part_and_what_was_measured_is_gone(run: Path) -> None:
    training = continue_run(run, config_of(training={"max_epochs": 5})).training
    assert (training.max_epochs, training.max_minutes) == (5, None)
    counters = read_counters(run / CHECKPOINT_FILE)
    assert (counters.finished, counters.part_step, counters.part_seconds) == (False, 20, 60.0)
    assert json.loads((run / "metrics.json").read_text()) == {"best_validation": BEST}
    assert not (run / "calibration.json").exists()


def test_more_minutes_are_for_as_many_epochs_again(run: Path) -> None:
    training = continue_run(run, config_of(training={"max_minutes": 3.0})).training
    assert (training.max_epochs, training.max_minutes) == (4, 3.0)
    assert load_config(run).training == training


def test_minutes_that_are_not_named_again_no_longer_hold(run: Path) -> None:
    continue_run(run, config_of(training={"max_minutes": 3.0}))
    counters = read_counters(run / CHECKPOINT_FILE)
    assert not counters.finished
    # While it is not finished, limits are changed and no other part begins.
    wanted = config_of(training={"max_minutes": 3.0, "max_epochs": 9})
    assert continue_run(run, wanted).training.max_minutes == 3.0
    assert read_counters(run / CHECKPOINT_FILE) == counters


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"max_epochs": 1.5}, r"more than the 2\.0 epochs .* got 1\.5"),
        ({"max_minutes": 0.5}, r"more than the 1\.0 minutes .* got 0\.5"),
    ],
)
def test_a_limit_that_is_already_reached_is_refused(
    run: Path, limits: dict[str, float], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        continue_run(run, config_of(training=limits))
    assert read_counters(run / CHECKPOINT_FILE).finished
