import pytest

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError
from knowformer.training.settings_file import build_config
from knowformer.tuning.space import (
    ALWAYS,
    INDUCTIVE,
    LARGE,
    default_space,
    parse_space,
    present_values,
)


def test_values_are_kept_as_typed_and_checked_as_settings() -> None:
    assert parse_space(["model.dropout=0, 0.1,0.1", "training.loss=binary"]) == {
        "model.dropout": ["0", "0.1"],
        "training.loss": ["binary"],
    }
    for wrong in ("model.dropout", "model.dropout=", "model.dropout=0,,1", "=1"):
        with pytest.raises(ConfigError, match=r"such as model\.dropout=0,0\.1,0\.3"):
            parse_space([wrong])
    with pytest.raises(ConfigError, match=r"model\.dropout"):
        parse_space(["model.dropout=0.1,2"])
    with pytest.raises(ConfigError, match="num_heads must divide"):
        parse_space(["model.num_heads=4,5"])
    parse_space(["model.num_heads=4,5"], ["model.hidden_dim=20"])
    parse_space(["model.num_heads=4,5", "model.hidden_dim=16,20"])  # 5 goes with 20
    with pytest.raises(ConfigError, match="Did you mean"):
        parse_space(["model.dropuot=0.1"])


def test_the_default_space_leaves_out_what_is_given(ring: Dataset) -> None:
    space = default_space(ring, fixed=["model.dropout"])
    assert space.keys() == ALWAYS.keys() - {"model.dropout"}


def test_every_default_value_is_a_setting() -> None:
    for key, values in (ALWAYS | LARGE | INDUCTIVE).items():
        for value in values:
            build_config(assignments=[f"{key}={value}"])


def test_what_settings_have_already_is_found_whatever_it_is_written_like() -> None:
    space = {"model.dropout": ["0.0", "0.10"], "training.batch_size": ["8"]}
    assert present_values(space, {}) == {"model.dropout": "0.10"}
    assert present_values(space, {"model": {"dropout": 0}}) == {"model.dropout": "0.0"}
