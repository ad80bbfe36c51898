from pathlib import Path

from typer.testing import CliRunner

from knowformer.errors import ConfigError
from knowformer.interfaces.app import app
from tests.integration.conftest import family_triples


def test_graphs_or_a_run_to_go_on_with_are_needed():
    done = CliRunner().invoke(app, ["pretrain"])
    assert done.exit_code == 2
    assert "GRAPH" in done.stderr


def test_settings_are_checked_before_a_graph_is_read():
    done = CliRunner().invoke(app, ["pretrain", "no such graph", "--set", "training.los=binary"])
    assert isinstance(done.exception, ConfigError)
    assert "training.loss" in str(done.exception)


def test_a_model_is_trained_on_several_graphs_and_answers_on_another(tmp_path: Path):
    run, families = str(tmp_path / "run"), tmp_path / "families.tsv"
    families.write_text("\n".join(family_triples("f", 8)), encoding="utf-8")
    small = ["--set", "model.hidden_dim=16", "--set", "training.max_valid_facts=20"]
    limits = ["--max-epochs", "0.02", "--threads", "1", "--seed", "1"]
    typed = [
        "pretrain",
        "umls-pykeen",
        "--validate-on",
        str(families),
        "--out",
        run,
        *small,
        *limits,
    ]
    done = CliRunner().invoke(app, typed, catch_exceptions=False)
    assert "Validation MRR: model 0." in done.stdout
    asked = ["answer", run, "--graph", "kinship", "--head", "person100", "--relation", "term6"]
    done = CliRunner().invoke(app, [*asked, "--threads", "1"], catch_exceptions=False)
    assert "104 candidates" in done.stdout
