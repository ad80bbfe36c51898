import json
from dataclasses import replace
from pathlib import Path

import pytest

from knowformer.audit.audit import audit
from knowformer.data.dataset import Dataset
from knowformer.data.labels import Labels
from knowformer.data.loading import load_dataset
from knowformer.data.readers.rows import BadRow, BadRows
from knowformer.errors import StorageError
from knowformer.importing.folder import check_free, write_folder


def test_a_folder_holds_all_that_is_written_and_loads_back(tmp_path: Path, ring: Dataset) -> None:
    name = ring.train.graph.entities.names[0]
    dataset = replace(ring, labels=Labels({name: "The First"}))
    bad_rows = BadRows(rows=[BadRow("f.csv:2", "Expected x")])
    write_folder(tmp_path / "ring", dataset, audit(dataset), bad_rows, {"seed": 3})
    loaded = load_dataset(tmp_path / "ring")
    assert loaded.same_as(ring)
    assert loaded.labels.entity(name) == "The First"
    assert (tmp_path / "ring" / "bad_rows.tsv").read_text() == "f.csv:2\tExpected x\n"
    assert json.loads((tmp_path / "ring" / "import.json").read_text()) == {"seed": 3}
    assert not (tmp_path / "ring" / "relation_names.txt").exists()


def test_only_a_folder_that_an_import_made_is_replaced(tmp_path: Path) -> None:
    check_free(tmp_path / "new" / "deep", force=False)
    (tmp_path / "old").mkdir()
    with pytest.raises(StorageError, match=r"already\. Choose another `out`\.$"):
        check_free(tmp_path / "old", force=False)
    with pytest.raises(StorageError, match=r"no import\.json in"):
        check_free(tmp_path / "old", force=True)
    (tmp_path / "old" / "import.json").write_text("{}")
    with pytest.raises(StorageError, match="or replace it with `force=True`"):
        check_free(tmp_path / "old", force=False)
    check_free(tmp_path / "old", force=True)


def test_a_file_in_the_way_is_named_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=f"found the file {tmp_path / 'file'}"):
        check_free(tmp_path / "file" / "deep" / "out", force=False)
