"""Data-set folders as an import writes them, and ``load_dataset`` reads them back.

train.txt, valid.txt, test.txt          facts, head<TAB>relation<TAB>tail
mapped/                                 of a large graph, in their place: see data.mapped_dataset
entity_names.txt, relation_names.txt    readable names, where there are any
audit.json, audit.md                    what the audit found
bad_rows.tsv                            rows that could not be used, if they were passed over
import.json                             what the folder was made from
"""

import json
import os
from pathlib import Path
from typing import Any

from knowformer.audit.audit import Audit
from knowformer.audit.text import audit_markdown
from knowformer.data.dataset import Dataset, Split
from knowformer.data.labels import write_labels
from knowformer.data.mapped_dataset import write_mapped
from knowformer.data.readers.rows import BadRows
from knowformer.errors import StorageError
from knowformer.storage.atomic_files import atomic_folder

RECORD_FILE = "import.json"
BAD_ROWS_FILE = "bad_rows.tsv"

FACTS_PER_WRITE = 65536


def check_free(folder: Path, *, force: bool) -> None:
    """Looks whether a data set may be written, before the work of reading it.

    Raises:
        StorageError: there is something of that name, and it is not to be written over.
    """
    if not os.path.lexists(folder):
        _check_parent(folder)
        return
    is_import = (folder / RECORD_FILE).is_file()
    if not force:
        hint = "Choose another `out`" + (", or replace it with `force=True`." if is_import else ".")
        raise StorageError(f"Expected a new folder as `out`, found {folder} already. {hint}")
    if not is_import:
        raise StorageError(
            f"Expected a folder that an import made, to replace it, found no {RECORD_FILE} in "
            f"{folder}. Choose another `out`."
        )


def _check_parent(folder: Path) -> None:
    """Looks whether the nearest folder above that exists can be written to."""
    parents = folder.absolute().parents
    above = next(parent for parent in parents if os.path.lexists(parent))
    if not above.is_dir():
        raise StorageError(f"Expected a folder to write {folder} into, found the file {above}.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise StorageError(
            f"Expected to write {folder}, got 'Permission denied' for {above}. Choose another "
            "`out`."
        )


def write_folder(
    folder: Path,
    dataset: Dataset,
    audit: Audit,
    bad_rows: BadRows,
    record: dict[str, Any],
    *,
    mapped: bool = False,
) -> None:
    """Writes a data set, its audit and its record; the folder appears whole, replacing an old one.

    Args:
        folder: the folder.
        dataset: the data set.
        audit: of it.
        bad_rows: rows that were passed over.
        record: what it was made from.
        mapped: write arrays that stay on disk, instead of text.

    Raises:
        StorageError: the folder cannot be written.
    """
    with atomic_folder(folder, replace=True) as place:
        if mapped:
            write_mapped(place, dataset)
        else:
            for split in (dataset.train, dataset.valid, dataset.test):
                _write_facts(place / f"{split.name}.txt", split)
            write_labels(place, dataset.labels)
        if bad_rows.rows:
            lines = [f"{row.place}\t{row.reason}" for row in bad_rows.rows]
            _write_lines(place / BAD_ROWS_FILE, lines)
        _write_json(place / "audit.json", audit.model_dump(mode="json"))
        (place / "audit.md").write_text(audit_markdown(audit), encoding="utf-8")
        _write_json(place / RECORD_FILE, record)


def _write_facts(path: Path, split: Split) -> None:
    entities, relations = split.graph.entities.names, split.graph.relations.names
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for facts in split.facts.split(FACTS_PER_WRITE):
            file.writelines(
                f"{entities[h]}\t{relations[r]}\t{entities[t]}\n"
                for h, r, t in facts.numpy().tolist()
            )


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="replace")


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8", errors="replace")
