from pathlib import Path

from typer.testing import CliRunner

from knowformer.errors import ConfigError, MissingPackageError
from knowformer.interfaces.app import app
from knowformer.interfaces.commands.tune import train_command
from knowformer.interfaces.schemas import TuningResponse
from knowformer.tuning.result import TuningResult
from knowformer.tuning.study import Trial

TRIAL = Trial(0, "complete", {"model.dropout": "0.1"}, 0.5, 20)


def test_the_command_to_type_is_exact(tmp_path: Path):
    result = TuningResult("my graph", tmp_path, ["seed=3"], [TRIAL])
    command = train_command(result)
    assert command == "knowformer train 'my graph' --set seed=3 --set model.dropout=0.1"
    content = TuningResponse.of(result, command).content()
    assert list(content) == ["graph", "folder", "trials", "best", "config", "command"]
    assert content["best"] == content["trials"][0]
    assert content["best"]["settings"] == {"model.dropout": "0.1"}


def test_what_to_vary_and_the_package_are_checked_before_anything_is_written(
    tmp_path: Path, monkeypatch
):
    out = tmp_path / "search"
    search = ["tune", "nations", "--out", str(out), "--max-minutes", "60"]
    done = CliRunner().invoke(app, [*search, "--vary", "model.dropout=0,2"])
    assert isinstance(done.exception, ConfigError)
    monkeypatch.setattr("knowformer.errors.find_spec", lambda _: None)
    done = CliRunner().invoke(app, search)
    assert isinstance(done.exception, MissingPackageError)
    assert "knowformer[tune]" in str(done.exception)
    assert not out.exists()
