"""Which options go together, before anything is loaded."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from knowformer.errors import ConfigError
from knowformer.interfaces.app import app

H, R, T = ["--head", "h"], ["--relation", "r"], ["--tail", "t"]
FILE = ["--queries", "q.tsv", "--out", "o.tsv"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "nothing to ask"),
        (H, "--head alone"),
        ([*H, *R, *T], "all three"),
        ([*H, *R, *FILE], "--head, --relation and --queries"),
        ([*FILE, "--all-missing", "r"], "--queries and --all-missing"),
        (FILE[:2], "--out with --queries"),
        ([*H, *R, "--out", "o.tsv"], "--queries or --all-missing with --out"),
        (["--all-missing", "r", "--out", "o.xls"], "ends in .tsv, .csv"),
        (["--all-missing", "r", "--samples", "2"], "no --samples"),
    ],
)
def test_what_does_not_go_together_is_refused(options: list[str], says: str, tmp_path: Path):
    done = CliRunner().invoke(app, ["answer", str(tmp_path / "no run"), *options])
    assert isinstance(done.exception, ConfigError)
    assert says in str(done.exception)
