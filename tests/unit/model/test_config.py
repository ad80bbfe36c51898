import pytest
from pydantic import ValidationError

from knowformer.choices import PresetName
from knowformer.model.config import PRESETS, ModelConfig


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValidationError, match=r"num_heads must divide .*3 heads for width 32"):
        ModelConfig(num_heads=3)
    assert ModelConfig(num_heads=8).num_heads == 8


@pytest.mark.parametrize(
    "setting",
    [
        {"hidden_dim": 0},
        {"num_layers": 0},
        {"num_value_hops": -1},
        {"dropout": 1.0},
        {"similarity": "cosine"},
        {"update_layers": 4},
        {"noise_scale": -1.0},
        {"hiden_dim": 32},
    ],
    ids=str,
)
def test_impossible_settings_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(setting))):
        ModelConfig.model_validate(setting)


def test_settings_cannot_change_under_a_model() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        ModelConfig().hidden_dim = 64  # type: ignore[misc]


def test_no_noise_width_means_the_width_of_the_states() -> None:
    assert ModelConfig(noise_dim=0, hidden_dim=64).noise_width == 64
    assert ModelConfig(noise_dim=3, hidden_dim=64).noise_width == 3


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_valid_models(preset: PresetName) -> None:
    config = ModelConfig.model_validate(PRESETS[preset])
    assert config.model_dump() | PRESETS[preset] == config.model_dump()


def test_the_presets_differ_where_the_papers_text_and_its_code_do() -> None:
    released, paper = (ModelConfig.model_validate(PRESETS[name]) for name in ("released", "paper"))
    assert (released.update_layers, released.update_norm, released.noise_width) == (2, True, 1)
    assert (paper.update_layers, paper.update_norm, paper.noise_width) == (3, False, 32)
    assert (released.noise_scale, paper.noise_scale) == (4.0, 1.0)
    assert (released.num_layers, released.num_query_key_hops, released.num_value_hops) == (3, 2, 3)
