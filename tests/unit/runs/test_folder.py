import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from knowformer.choices import PresetName
from knowformer.data.dataset import Dataset, Split
from knowformer.data.loading import load_dataset
from knowformer.errors import BundleError, ConfigError, StorageError
from knowformer.model.config import PRESETS
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.runs.folder import (
    holds_run,
    load_bundle,
    load_config,
    load_run_dataset,
    read_environment,
    save_weights,
    start_run,
)
from knowformer.scoring.scorer import Scorer
from knowformer.storage.tensor_files import write_tensors
from knowformer.storage.triples_io import NamedTriple
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import build_config

FILES = {"config.toml", "dataset.json", "facts.safetensors", "environment.json"}


def small(preset: PresetName = "released", *, hidden_dim: int = 16) -> RunConfig:
    sizes = [f"model.hidden_dim={hidden_dim}", "model.num_layers=2", "seed=3"]
    return build_config(preset=preset, assignments=sizes)


def model_of(config: RunConfig, dataset: Dataset) -> KnowFormer:
    model = KnowFormer(config.model, 2 * len(dataset.relations))
    initialize(model, generator=torch.Generator().manual_seed(5))
    return model


def scores_of(model: KnowFormer, split: Split) -> Tensor:
    heads = torch.arange(len(split.graph.entities))
    scorer = Scorer(model, split.graph, seed=3)
    return scorer.score(heads, heads % (2 * len(split.graph.relations))).dense()


@pytest.fixture
def inductive(
    tmp_path: Path, write_triples: Callable[[Path, Sequence[NamedTriple]], Path]
) -> Dataset:
    parts = {
        "named/train": [("a", "r", "b"), ("b", "s", "Łódź\u2028")],
        "named/valid": [("a", "s", "b")],
        "named_ind/train": [("x", "r", "y"), ("y", "r", "z")],
        "named_ind/valid": [("x", "s", "z")],
        "named_ind/test": [("z", "s", "x")],
    }
    for name, triples in parts.items():
        write_triples(tmp_path / "data" / f"{name}.txt", triples)
    return load_dataset(tmp_path / "data" / "named")


@pytest.mark.parametrize("hidden_dim", [16, 8])  # fused kernels, and the reference
@pytest.mark.parametrize("preset", PRESETS)
def test_a_loaded_run_gives_the_same_scores_bit_for_bit(
    tmp_path: Path, ring: Dataset, preset: PresetName, hidden_dim: int
) -> None:
    config = small(preset, hidden_dim=hidden_dim)
    model = model_of(config, ring)
    start_run(tmp_path / "run", config, ring)
    save_weights(tmp_path / "run", model, link=config.training.link)
    bundle = load_bundle(tmp_path / "run")
    assert bundle.config == config
    assert bundle.link == {"released": "softmax", "paper": "sigmoid"}[preset]
    assert not bundle.model.training
    assert torch.equal(scores_of(bundle.model, bundle.dataset.test), scores_of(model, ring.test))


@pytest.mark.parametrize("layout", ["ring", "inductive"])
def test_a_data_set_comes_back_from_the_run_folder_alone(
    tmp_path: Path, layout: str, request: pytest.FixtureRequest
) -> None:
    dataset: Dataset = request.getfixturevalue(layout)
    start_run(tmp_path / "run", small(), dataset)
    loaded = load_run_dataset(tmp_path / "run")
    assert loaded.name == dataset.name
    assert loaded.relations == dataset.relations
    assert loaded.is_inductive == dataset.is_inductive
    for name in ("train", "valid", "test"):
        mine, theirs = dataset.split(name), loaded.split(name)
        assert theirs.name == name
        assert theirs.graph.entities == mine.graph.entities
        assert torch.equal(theirs.graph.facts, mine.graph.facts)
        assert torch.equal(theirs.facts, mine.facts)
        assert torch.equal(theirs.known, mine.known)


def test_a_folder_in_use_is_refused_and_left_as_it_is(tmp_path: Path, ring: Dataset) -> None:
    start_run(tmp_path, small(), ring)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == FILES
    with pytest.raises(BundleError, match=f"found one in {tmp_path}.*`resume=True`"):
        start_run(tmp_path, small("paper"), ring)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_with_other_files_may_be_used(tmp_path: Path, ring: Dataset) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert not holds_run(tmp_path)
    start_run(tmp_path, small(), ring)
    assert holds_run(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_run_that_cannot_be_stored_leaves_nothing_behind(tmp_path: Path, ring: Dataset) -> None:
    folder = tmp_path / "run"
    # Settings come last, and here they cannot be written.
    (folder / "config.toml.d").mkdir(parents=True)
    (folder / "environment.json" / "in the way").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"environment\.json"):
        start_run(folder, small(), ring)
    assert not holds_run(folder)
    assert {path.name for path in folder.iterdir()} == {"config.toml.d", "environment.json"}


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=rf"config\.toml, found none at {tmp_path}"):
        load_bundle(tmp_path)


def test_a_run_without_weights_yet_says_how_to_go_on(tmp_path: Path, ring: Dataset) -> None:
    start_run(tmp_path, small(), ring)
    with pytest.raises(BundleError, match=r"model\.safetensors .*resume=True"):
        load_bundle(tmp_path)


def test_the_link_function_is_read_from_the_weights_and_not_from_the_settings(
    tmp_path: Path, ring: Dataset
) -> None:
    start_run(tmp_path, small(), ring)
    model = model_of(small(), ring)
    save_weights(tmp_path, model, link="sigmoid")
    assert load_bundle(tmp_path).config.training.link == "softmax"
    assert load_bundle(tmp_path).link == "sigmoid"
    # As runs were stored before: the loss decides.
    write_tensors(tmp_path / "model.safetensors", model.state_dict())
    assert load_bundle(tmp_path).link == "softmax"
    write_tensors(tmp_path / "model.safetensors", model.state_dict(), {"link_function": "probit"})
    with pytest.raises(BundleError, match=r"softmax or sigmoid .* got 'probit'"):
        load_bundle(tmp_path)


def test_weights_of_other_settings_are_refused(tmp_path: Path, ring: Dataset) -> None:
    start_run(tmp_path, small(), ring)
    save_weights(tmp_path, model_of(small("paper"), ring), link="sigmoid")
    with pytest.raises(BundleError, match=r"model\.safetensors, got others"):
        load_bundle(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("config.toml", "[model\n", ConfigError),
        ("config.toml", "[model]\nhidden_dim = 0\n", ConfigError),
        ("dataset.json", "{", BundleError),
        ("dataset.json", "{}", BundleError),
        ("facts.safetensors", "short", BundleError),
    ],
)
def test_a_damaged_file_is_named(
    tmp_path: Path, ring: Dataset, name: str, content: str, error: type[Exception]
) -> None:
    start_run(tmp_path, small(), ring)
    save_weights(tmp_path, model_of(small(), ring), link="softmax")
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=name.replace(".", r"\.")):
        load_bundle(tmp_path)


def test_a_newer_format_asks_for_an_update(tmp_path: Path, ring: Dataset) -> None:
    start_run(tmp_path, small(), ring)
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 99}))
    with pytest.raises(BundleError, match=r"got 99\. Update knowformer"):
        load_run_dataset(tmp_path)


def test_settings_come_back_complete(tmp_path: Path, ring: Dataset) -> None:
    config = small("paper")
    start_run(tmp_path, config, replace(ring, name="renamed"))
    assert load_config(tmp_path) == config
    assert load_run_dataset(tmp_path).name == "renamed"


@pytest.mark.parametrize("first_line", [0, 1], ids=["counted", "an older run, not counted"])
def test_settings_cut_off_between_any_two_lines_are_refused(
    tmp_path: Path, ring: Dataset, first_line: int
) -> None:
    start_run(tmp_path / "run", small("released"), ring)
    path = tmp_path / "run" / "config.toml"
    lines = path.read_text("utf-8").splitlines(keepends=True)[first_line:]
    path.write_text("".join(lines), "utf-8")
    assert load_config(tmp_path / "run") == small("released")
    for number in range(len(lines)):
        path.write_text("".join(lines[:number]), "utf-8")
        with pytest.raises(ConfigError, match="damaged"):
            load_config(tmp_path / "run")


def test_where_a_run_was_trained_is_an_object_or_refused(tmp_path: Path) -> None:
    assert read_environment(tmp_path) == {}
    path = tmp_path / "environment.json"
    path.write_text('{"commit": null}')
    assert read_environment(tmp_path) == {"commit": None}
    for damaged in ("", "[]", "{", "[" * 100_000):
        path.write_text(damaged)
        with pytest.raises(BundleError, match=r"JSON object in .*environment\.json"):
            read_environment(tmp_path)
