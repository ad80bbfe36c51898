"""What ``--json`` prints: keys and their order, which programs rely on."""

import json
from pathlib import Path

from knowformer.data import catalog
from knowformer.importing.importing import ImportOptions, import_files
from knowformer.interfaces.schemas import DatasetResponse, ImportResponse, TrainingResponse


def test_a_data_set_has_its_counts_and_its_place():
    content = DatasetResponse.of(catalog.find("nations")).content()
    assert list(content) == [
        *("name", "kind", "entities", "relations", "facts", "test_facts", "embedded", "folder"),
        "licence",
    ]
    assert (content["entities"], content["relations"], content["embedded"]) == (14, 55, True)
    assert content["test_facts"] == content["facts"]["test"]
    assert Path(content["folder"]).is_dir()


def test_what_is_nowhere_is_said_to_be_null(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(catalog.DATA_VARIABLE, str(tmp_path))
    monkeypatch.setenv(catalog.CACHE_VARIABLE, str(tmp_path))
    content = DatasetResponse.of(catalog.find("fb15k-237")).content()
    assert content["folder"] is None


def test_a_training_names_its_run():
    response = TrainingResponse(
        run="r",
        dataset="d",
        best_validation={"valid_mrr": 0.5},
        validation_baselines={"rules": {}},
    )
    assert list(response.content().items()) == [
        *(("run", "r"), ("dataset", "d"), ("best_validation", {"valid_mrr": 0.5})),
        ("validation_baselines", {"rules": {}}),
    ]


def test_an_import_comes_with_the_whole_audit_that_it_wrote(tmp_path: Path):
    facts = tmp_path / "facts.tsv"
    facts.write_text("".join(f"a{n}\tr\ta{n + 1}\n" for n in range(40)), "utf-8")
    result = import_files([facts], tmp_path / "data", options=ImportOptions())
    content = ImportResponse.of(result).content()
    assert list(content) == ["folder", "rows", "bad_rows", "notes", "audit"]
    assert (content["rows"], content["bad_rows"]) == (40, 0)
    assert content["audit"] == json.loads((tmp_path / "data" / "audit.json").read_text("utf-8"))
