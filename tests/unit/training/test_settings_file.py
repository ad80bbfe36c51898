import tomllib
from pathlib import Path

import pytest

from knowformer.choices import PresetName
from knowformer.data import catalog
from knowformer.errors import ConfigError
from knowformer.model.config import PRESETS
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import (
    RECOMMENDED_FILE,
    RELEASED_FILE,
    build_config,
    parse_config,
    recommended_settings,
    to_toml,
)


def refused(*assignments: str) -> str:
    with pytest.raises(ConfigError) as caught:
        build_config(assignments=list(assignments))
    return str(caught.value)


def test_settings_survive_toml() -> None:
    config = build_config(
        assignments=[
            "model.hidden_dim=64",
            "model.similarity=exponential",
            "training.loss=binary",
            "training.max_minutes=1.5",
            "training.patience=3",
            "seed=9",
        ]
    )
    assert parse_config(tomllib.loads(to_toml(config)), where="test") == config
    assert parse_config(tomllib.loads(to_toml(RunConfig())), where="test") == RunConfig()


def test_toml_has_every_setting_that_is_on() -> None:
    stored = tomllib.loads(to_toml(RunConfig()))
    assert stored["model"]["num_value_hops"] == 3
    assert stored["seed"] == 0
    assert "patience" not in stored["training"]


def test_what_comes_later_wins(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'seed = 5\n[model]\nnum_heads = 2\nnoise_scale = 2.0\n[training]\nloss = "binary"\n'
    )
    config = build_config(
        file=file,
        preset="paper",
        assignments=["model.noise_scale=3.0"],
        defaults={"model": {"update_layers": 2, "dropout": 0.3}, "seed": 1},
    )
    assert config.model.dropout == 0.3  # defaults alone say so
    assert config.model.update_layers == 3  # the preset over the defaults
    assert config.model.num_heads == 2  # the file over the preset
    assert config.seed == 5  # the file over the defaults
    assert config.model.noise_scale == 3.0  # the assignment over the file


def test_composing_leaves_the_presets_as_they_were() -> None:
    before = {name: dict(settings) for name, settings in PRESETS.items()}
    build_config(preset="paper", assignments=["model.num_heads=4", "model.noise_dim=5"])
    assert before == PRESETS


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_whole_runs(preset: PresetName) -> None:
    config = build_config(preset=preset)
    for key, value in PRESETS[preset].items():
        assert getattr(config.model, key) == value
    assert config.training.loss == {"released": "cross_entropy", "paper": "binary"}[preset]


def test_the_released_preset_is_the_command_for_the_data_set() -> None:
    config = build_config(preset="released", dataset="fb15k-237")
    model, training = config.model, config.training
    assert (model.num_layers, model.num_query_key_hops, model.num_value_hops) == (3, 2, 3)
    assert (model.hidden_dim, model.num_heads, model.dropout) == (32, 4, 0.1)
    assert model.view_size == 0  # a query sees the whole graph
    assert (training.loss, training.num_negatives) == ("binary", 2**8)
    assert training.adversarial_temperature == 0.5
    assert (training.hide, training.targets) == ("links", "one")
    assert (training.learning_rate, training.schedule) == (5e-3, "steps")
    assert training.batch_size == 4 * 96
    assert training.weight_decay == pytest.approx(1e-4 / 96, rel=1e-3)  # their loss is a sum
    # 20 passes in one direction are 10 in both; they validate after each of theirs.
    assert (training.max_epochs, training.validations_per_epoch) == (10.0, 2)
    wordnet = build_config(preset="released", dataset="wn18rr").training
    assert (wordnet.loss, wordnet.batch_size, wordnet.hide) == ("cross_entropy", 4 * 32, "facts")
    assert wordnet.weight_decay == 1e-4  # their cross-entropy is a mean
    assert build_config(preset="released", dataset="nell-995_v2").training.weight_decay == 1e-5
    assert build_config(preset="released", dataset="fb15k-237_v3").model.hidden_dim == 64


def test_every_released_recipe_is_a_whole_run_with_negatives_that_exist() -> None:
    recipes = tomllib.loads(RELEASED_FILE.read_text("utf-8"))
    assert len(recipes) == 16  # the commands of the README
    for name in recipes:
        training = build_config(preset="released", dataset=name).training
        assert training.num_negatives <= max(256, catalog.find(name).counts.entities)
        assert training.weight_decay < 1e-5 or training.loss == "cross_entropy"
    other = build_config(preset="released", dataset="umls")
    assert other == build_config(preset="released")


@pytest.mark.parametrize(
    ("assignment", "key", "value"),
    [
        ("training.batch_size=32", "batch_size", 32),
        ("training.learning_rate=1e-3", "learning_rate", 1e-3),
        ("training.loss=binary", "loss", "binary"),
        ('training.loss="binary"', "loss", "binary"),
        (" training.targets = one ", "targets", "one"),
        ("training.max_minutes=2", "max_minutes", 2.0),
    ],
)
def test_assignments_are_read_as_toml_or_as_a_bare_word(
    assignment: str, key: str, value: object
) -> None:
    assert getattr(build_config(assignments=[assignment]).training, key) == value


@pytest.mark.parametrize("assignment", ["model.hidden_dim", "=3", "", "  =3"])
def test_an_assignment_without_key_and_value_is_refused(assignment: str) -> None:
    assert f"got {assignment!r}" in refused(assignment)


def test_a_misspelt_setting_is_answered_with_the_nearest() -> None:
    message = refused("model.hiden_dim=64")
    assert "'model.hiden_dim' in `assignments`" in message
    assert "Did you mean 'model.hidden_dim'" in message
    assert "'training.batch_size'" in refused("training.batchsize=3")


def test_a_setting_like_no_other_is_answered_with_all_of_them() -> None:
    message = refused("qqqqqq=1")
    assert "model.hidden_dim, " in message
    assert "training.loss, " in message
    assert ", seed, " in message


@pytest.mark.parametrize(
    ("assignment", "parts"),
    [
        ("model.hidden_dim=wide", ["model.hidden_dim", "'wide'"]),
        ("training.learning_rate=-1", ["training.learning_rate", "greater than 0", "-1"]),
        ("training.loss=hinge", ["training.loss", "'cross_entropy'", "'hinge'"]),
        ("model.num_heads=5", ["model.num_heads must divide model.hidden_dim", "5 heads"]),
        ("seed=-1", ["seed", "-1"]),
        ("model=3", ["model", "3"]),
    ],
)
def test_an_impossible_value_is_explained(assignment: str, parts: list[str]) -> None:
    message = refused(assignment)
    for part in parts:
        assert part in message


def test_a_broken_or_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml, found none"):
        build_config(file=tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("[model\n")
    with pytest.raises(ConfigError, match=r"TOML file at .*broken\.toml"):
        build_config(file=tmp_path / "broken.toml")


def test_a_bad_setting_in_a_file_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[training]\nbatch_size = 0\n")
    with pytest.raises(ConfigError, match=r"training\.batch_size .* got 0 in .*run\.toml"):
        build_config(file=tmp_path / "run.toml")


def test_recommended_settings_are_valid_and_of_known_data_sets() -> None:
    for name in tomllib.loads(RECOMMENDED_FILE.read_text("utf-8")):
        assert name in catalog.entries()
        assert build_config(defaults=recommended_settings(name)) != RunConfig(), name


def test_recommended_settings_are_a_copy_and_give_way_to_explicit_ones() -> None:
    assert recommended_settings(None) == recommended_settings("own.tsv") == {}
    recommended_settings("fb15k-237_v1")["model"]["num_layers"] = 7
    advised = recommended_settings("fb15k-237_v1")
    assert build_config(defaults=advised).model.num_layers == 2
    explicit = build_config(defaults=advised, assignments=["model.num_layers=1"])
    assert explicit.model.num_layers == 1


def test_zero_overrides_a_recommended_partition_size() -> None:
    defaults = {"training": {"region_size": 900}}
    config = build_config(defaults=defaults, assignments=["training.region_size=0"])
    assert config.training.region_size is None
    with pytest.raises(ConfigError, match="region_size"):
        build_config(assignments=["training.region_size=1"])


def test_settings_that_contradict_each_other_are_refused() -> None:
    both = ["training.validation_region=0.3", "training.validation_relations=0.3"]
    with pytest.raises(ConfigError, match="exclude each other"):
        build_config(assignments=both)


def test_settings_by_name_are_checked_as_assignments_are() -> None:
    named = build_config(settings={"model.hidden_dim": 64, "training.loss": "binary", "seed": 3})
    typed = build_config(assignments=["model.hidden_dim=64", "training.loss=binary", "seed=3"])
    assert (
        named
        == typed
        == build_config(
            settings={"model": {"hidden_dim": 64}, "training": {"loss": "binary"}, "seed": 3}
        )
    )
    with pytest.raises(ConfigError) as refusal:
        build_config(settings={"model.hiden_dim": 64})
    said = refused("model.hiden_dim=64")
    assert str(refusal.value) == said.replace("`assignments`", "`settings`")
