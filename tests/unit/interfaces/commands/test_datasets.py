import json

from typer.testing import CliRunner

from knowformer.data import catalog
from knowformer.interfaces.app import app


def test_the_catalogue_is_listed_and_a_data_set_is_found_here():
    listed = json.loads(CliRunner().invoke(app, ["datasets", "--json"]).stdout)
    assert [entry["name"] for entry in listed] == list(catalog.entries())
    got = CliRunner().invoke(app, ["datasets", "get", "nations", "--json"])
    (nations,) = [entry for entry in listed if entry["name"] == "nations"]
    assert json.loads(got.stdout) == nations
