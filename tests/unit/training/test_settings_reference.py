import pytest

from knowformer.errors import ConfigError
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import flat_settings
from knowformer.training.settings_reference import describe_settings, find_setting


def test_every_setting_is_described_from_its_source() -> None:
    settings = describe_settings()
    assert {each.name: each.default for each in settings} == flat_settings(RunConfig())
    assert all(each.meaning.endswith(".") for each in settings)


@pytest.mark.parametrize(
    ("name", "values", "default"),
    [
        ("model.view_size", "whole number >= 0, or none", "none"),
        ("model.view_prior", "number >= 0, <= 16", "0.3"),
        ("model.update_norm", "true or false", "true"),
        ("training.loss", "cross_entropy, binary or pairs", "cross_entropy"),
        ("training.region_size", "whole number >= 2, or none", "none"),
        ("training.max_minutes", "number > 0, or none", "none"),
    ],
)
def test_values_and_default_are_said_in_words(name: str, values: str, default: str) -> None:
    setting = find_setting(name)
    assert (setting.values, setting.default_text) == (values, default)


def test_a_misspelt_setting_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"got 'model.viewsize'\. Did you mean 'model.view_size'"):
        find_setting("model.viewsize")
