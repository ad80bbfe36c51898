from pathlib import Path

import pytest

from knowformer.errors import ConfigError
from knowformer.training.settings_file import build_config
from knowformer.tuning.result import TuningResult, best_toml
from knowformer.tuning.study import Trial

TRIALS = [
    Trial(0, "complete", {"model.dropout": "0.1", "training.region_size": "5"}, 0.5, 20),
    Trial(1, "complete", {"model.dropout": "0", "training.region_size": "0"}, 0.6, 20),
    Trial(2, "pruned", {"model.dropout": "0.3", "training.region_size": "0"}, 0.7, 20),
    Trial(3, "failed", {"model.dropout": "0.2", "training.region_size": "5"}, None, None, "No."),
]


def test_the_best_trial_is_complete_and_its_file_gives_its_settings(tmp_path: Path) -> None:
    settings = ["seed=3", "training.max_epochs=1"]
    result = TuningResult("my graph", tmp_path, settings, TRIALS)
    assert result.best == TRIALS[1]
    assignments = ["seed=3", "model.dropout=0", "training.region_size=0"]
    assert result.best_settings == assignments
    config = build_config(assignments=[*assignments, "training.max_minutes=1"])
    (tmp_path / "best.toml").write_text(best_toml(result, config), "utf-8")
    read = build_config(
        file=tmp_path / "best.toml", defaults={"training": {"region_size": 9}}
    )  # 0 must turn off what is recommended
    assert read == build_config(assignments=assignments)


def test_the_table_has_complete_trials_first(tmp_path: Path) -> None:
    rows = TuningResult("graph", tmp_path, [], TRIALS).table().rows
    assert [row[0] for row in rows] == [1, 0, 2, 3]
    assert rows[0][-1] == "dropout=0, region_size=0"
    assert rows[-1][-1] == "No."


def test_without_a_complete_trial_the_last_error_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"found none\. The last one failed: No\."):
        _ = TuningResult("graph", tmp_path, [], TRIALS[2:]).best
    with pytest.raises(ConfigError, match="max_minutes"):
        _ = TuningResult("graph", tmp_path, [], []).best
