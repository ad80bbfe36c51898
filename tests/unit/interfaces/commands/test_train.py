from pathlib import Path

import pytest
from typer.testing import CliRunner

from knowformer.errors import BundleError, ConfigError
from knowformer.interfaces.app import app
from knowformer.interfaces.commands.train import _compose, _tell_recommended, what_would_help
from knowformer.pipeline import starting_settings
from knowformer.training.checkpoint import Counters
from knowformer.training.settings_file import build_config


def test_a_graph_or_a_run_to_go_on_with_is_needed(tmp_path: Path):
    for options in ([], ["--resume"], ["--out", str(tmp_path)]):
        done = CliRunner().invoke(app, ["train", *options])
        assert done.exit_code == 2
        assert "GRAPH" in done.stderr
    done = CliRunner().invoke(app, ["train", "--resume", "--out", str(tmp_path)])
    assert isinstance(done.exception, BundleError)


def test_settings_are_checked_before_the_graph_is_read():
    done = CliRunner().invoke(app, ["train", "no such graph", "--set", "training.los=binary"])
    assert isinstance(done.exception, ConfigError)
    assert "training.loss" in str(done.exception)


def test_a_preset_takes_the_place_of_what_is_recommended():
    assert starting_settings("wn18rr")["model"]["view_size"] == 1000
    assert starting_settings("wn18rr", recommended=False) == {}
    config = _compose(None, "released", "fb15k-237_v1", ["training.max_epochs=2"], {})
    assert (config.model.hidden_dim, config.model.num_layers) == (64, 3)
    assert (config.training.edge_dropout, config.training.max_epochs) == (0.0, 2.0)


def test_recommended_settings_are_told_where_they_were_used(capsys: pytest.CaptureFixture[str]):
    advised = {"model": {"hidden_dim": 16}, "training": {"batch_size": 4}}
    chosen = build_config(defaults=advised, assignments=["model.hidden_dim=8"])
    _tell_recommended("graph", advised, chosen)
    assert capsys.readouterr().err == (
        "note: settings recommended for graph: training.batch_size = 4\n"
    )


@pytest.mark.parametrize(
    ("step", "settings", "seen", "advice"),
    [
        (
            0,
            {"training.max_minutes": 1},
            "no fact at all",
            "--resume 'my run' --max-minutes 4 (in a short run '--from shipped'",
        ),
        (5, {"training.max_minutes": 0.5}, "5% of the facts once", "--max-minutes 2 (in a short"),
        (250, {"training.max_minutes": 9}, "the facts 2.5 times", "--max-minutes 36"),
        (
            5,
            {"training.max_minutes": 1, "model.relation_encoder": "graph"},
            "5% of the facts once",
            "--max-minutes 4.",
        ),
        (200, {"training.max_minutes": 9, "training.max_epochs": 2}, "2 epochs", "--by-relation"),
        (100, {"training.max_epochs": 1}, "1 epochs", "--by-relation"),
    ],
)
def test_what_would_help_goes_by_what_the_model_has_seen(
    step: int, settings: dict[str, object], seen: str, advice: str
) -> None:
    config = build_config(settings=settings)
    said = what_would_help(Path("my run"), Counters(step=step, steps_per_epoch=100), config)
    assert seen in said
    assert advice in said
