import json

import pytest
from typer.testing import CliRunner

from knowformer.errors import ConfigError
from knowformer.interfaces.app import app


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["settings", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_all_settings_or_one_are_shown_as_text_and_as_json() -> None:
    listed = json.loads(shown("--json"))
    one = json.loads(shown("model.hidden_dim", "--json"))
    assert one in listed
    assert one == {
        "name": "model.hidden_dim",
        "values": "whole number >= 1, <= 4096",
        "default": 32,
        "meaning": "D, width of every state.",
    }
    table = shown()
    assert all(each["name"] in table for each in listed)
    assert shown("training.patience").startswith("training.patience = none  (whole number >= 1")


def test_mistakes_are_refused() -> None:
    done = CliRunner().invoke(app, ["settings", "training.patiens"])
    assert isinstance(done.exception, ConfigError)
    assert "Did you mean 'training.patience'" in str(done.exception)
    assert CliRunner().invoke(app, ["settings", "seed", "--markdown"]).exit_code == 2


@pytest.mark.parametrize("name", ["", "training."])
def test_a_part_of_a_name_is_no_setting(name: str) -> None:
    assert isinstance(CliRunner().invoke(app, ["settings", name]).exception, ConfigError)
