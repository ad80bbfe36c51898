"""What fuzzers feed: every reader and the run folder; bytes in, a result or an error of ours."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from knowformer.answering.query_files import read_rows
from knowformer.choices import Format
from knowformer.data.labels import read_label_file
from knowformer.data.loading import load_dataset
from knowformer.data.readers.formats import READERS
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows
from knowformer.errors import KnowformerError
from knowformer.runs.folder import load_bundle, read_metrics
from knowformer.training.checkpoint import read_counters
from knowformer.training.events import read_events
from knowformer.training.settings_file import build_config

Target = Callable[[Path, bytes], object]


def _exhaust(rows: Iterator[Any]) -> None:
    for _ in rows:
        pass


def _read_format(kind: Format, folder: Path, content: bytes, *, skip: bool = False) -> None:
    reader = READERS[kind]
    path = folder / f"file{reader.endings[0]}"
    path.write_bytes(content)
    _exhaust(reader.read(path, Reading(bad_rows=BadRows(skip=skip))))


def _read_questions(ending: str, folder: Path, content: bytes) -> None:
    path = folder / f"questions{ending}"
    path.write_bytes(content)
    _exhaust(read_rows(path))


def _write_and(read: Callable[[Path], object], name: str, folder: Path, content: bytes) -> object:
    path = folder / name
    path.write_bytes(content)
    return read(path)


READER_TARGETS: dict[str, Target] = {
    **{f"import {kind.value}": partial(_read_format, kind) for kind in READERS},
    "import tsv, skipping": partial(_read_format, Format.TSV, skip=True),
    "import csv, skipping": partial(_read_format, Format.CSV, skip=True),
    **{
        f"questions {e}": partial(_read_questions, e)
        for e in (".tsv", ".csv", ".jsonl", ".parquet")
    },
    "graph": partial(_write_and, load_dataset, "graph.tsv"),
    "graph csv": partial(_write_and, load_dataset, "graph.csv"),
    "labels": partial(_write_and, read_label_file, "labels.tsv"),
    "settings": partial(_write_and, lambda path: build_config(file=path), "settings.toml"),
}


def _read_run(name: str, template: Path, folder: Path, content: bytes) -> None:
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(template, run)
    (run / name).write_bytes(content)
    if name == "checkpoint.safetensors":
        read_counters(run / name)
    elif name == "events.jsonl":
        read_events(run / name)
    elif name == "metrics.json":
        read_metrics(run)
    else:
        load_bundle(run)


def run_targets(template: Path) -> dict[str, Target]:
    """Every file of a run folder."""
    names = ("config.toml", "dataset.json", "facts.safetensors", "model.safetensors",
             "calibration.json", "metrics.json", "events.jsonl",
             "checkpoint.safetensors")  # fmt: skip
    return {f"run {name}": partial(_read_run, name, template) for name in names}


def feed(target: Target, folder: Path, content: bytes) -> None:
    """Raises what is no error of ours."""
    said = ""
    try:
        target(folder, content)
    except KnowformerError as error:
        said = str(error)
    assert len(said) < 4000
    assert not any(character in said for character in "\n\r\x1b"), said
