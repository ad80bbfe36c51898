"""``knowformer serve``: what is refused before anything is loaded."""

from pathlib import Path

import pytest

from knowformer.errors import ConfigError, MissingPackageError
from knowformer.interfaces.commands import serve


def test_others_may_reach_it_with_tokens_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--token-file with --host 0\.0\.0\.0"):
        serve.command(tmp_path, host="0.0.0.0", port=0)
    with pytest.raises(ConfigError, match="token file"):
        serve.command(tmp_path, host="0.0.0.0", port=0, token_file=tmp_path / "none")


def test_without_the_extra_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knowformer.errors.find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"pip install 'knowformer\[server\]'"):
        serve.command(tmp_path)
