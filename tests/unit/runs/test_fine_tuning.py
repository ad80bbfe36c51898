import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError, DataError
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.runs.fine_tuning import inherited_settings, initial_weights
from knowformer.runs.folder import load_config, save_weights, start_run
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import merge_settings, parse_config

MODEL = {"hidden_dim": 8, "num_layers": 1, "num_query_key_hops": 1, "num_value_hops": 1}


def config_of(**settings: Any) -> RunConfig:
    wanted: dict[str, Any] = {"model": {**MODEL, "view_size": 0}, "training": {"loss": "binary"}}
    merge_settings(wanted, settings)
    return parse_config(wanted, where="test")


@pytest.fixture
def run(tmp_path: Path, ring: Dataset) -> Path:
    config = config_of()
    start_run(tmp_path, config, ring)
    model = KnowFormer(config.model, 2 * len(ring.relations))
    initialize(model, generator=torch.Generator().manual_seed(7))
    save_weights(tmp_path, model, link=config.training.link)
    return tmp_path


def relations(*names: str) -> Vocabulary:
    return Vocabulary(names, kind="relation")


def test_model_and_loss_are_inherited_but_not_that_the_graph_was_small(run: Path) -> None:
    settings = inherited_settings(run)
    assert "view_size" not in settings["model"]
    config = parse_config(settings, where="test")
    assert config.model.model_copy(update={"view_size": 0}) == load_config(run).model
    assert config.training.loss == "binary"


def test_new_relations_are_told_and_start_at_random(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        weights = initial_weights(run, config_of(), relations("far", "next"))
    assert "1 of 2 relations are new" in caplog.text
    assert "far" in caplog.text
    other = initial_weights(run, config_of(seed=1), relations("far", "next"))
    table = "encoder.query_relations.weight"
    assert not torch.equal(weights[table][0], other[table][0])
    assert torch.equal(weights[table][1], other[table][1])


def test_another_model_or_no_common_relation_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.num_layers = 1, got 2"):
        initial_weights(run, config_of(model={"num_layers": 2}), relations("next"))
    assert initial_weights(run, config_of(model={"dropout": 0.5}), relations("next"))
    with pytest.raises(DataError, match=r"at least one relation .* 'far' and 0 others are new"):
        initial_weights(run, config_of(), relations("far"))
