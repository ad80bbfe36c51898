"""Which options go together, before anything is loaded."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from knowformer.errors import ConfigError
from knowformer.interfaces.app import app

FACT = ["--head", "h", "--relation", "r", "--tail", "t"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (FACT[:2], "got no --relation and no --tail"),
        ([*FACT, "--test-set", "3"], "more than one"),
        ([*FACT, "--picture", "x.bmp"], "x.bmp"),
    ],
)
def test_what_does_not_go_together_is_refused(options: list[str], says: str, tmp_path: Path):
    done = CliRunner().invoke(app, ["explain", str(tmp_path / "no run"), *options])
    assert isinstance(done.exception, ConfigError)
    assert says in str(done.exception)
