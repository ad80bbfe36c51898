"""What fuzzers feed: every reader and the run folder; bytes in, a result or an error of ours."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from torch.optim import Adam

from knowformer import Reasoner
from knowformer.answering.candidates import find_candidates
from knowformer.answering.query_files import measure, read_rows
from knowformer.choices import Format
from knowformer.data.labels import Labels, read_label_file
from knowformer.data.loading import load_dataset
from knowformer.data.readers.columns import Dialect
from knowformer.data.readers.formats import READERS
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import BadRows
from knowformer.errors import KnowformerError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.runs.folder import check_resumable, load_initial_weights
from knowformer.training.checkpoint import Counters, load_checkpoint
from knowformer.training.events import read_events
from knowformer.training.settings_file import build_config
from tests.hostile.seeds import NAMES, good_files

Target = Callable[[Path, bytes], object]

GRAPH = KnowledgeGraph.from_triples([(name, "r", NAMES[0]) for name in NAMES])
RUN_FILES = ("config.toml", "dataset.json", "facts.safetensors", "model.safetensors",
             "calibration.json", "metrics.json", "events.jsonl",
             "checkpoint.safetensors", "initial.safetensors")  # fmt: skip


def _exhaust(rows: Iterator[Any]) -> None:
    for _ in rows:
        pass


def _read_format(kind: Format, path: Path, *, skip: bool = False, **reading: Any) -> None:
    _exhaust(READERS[kind].read(path, Reading(bad_rows=BadRows(skip=skip), **reading)))


def _read_questions(path: Path) -> None:
    measure(path)
    _exhaust(read_rows(path))


def _write_and(read: Callable[[Path], object], name: str, folder: Path, content: bytes) -> object:
    path = folder / name
    path.write_bytes(content)
    return read(path)


def _readers() -> dict[str, Target]:
    targets: dict[str, tuple[Callable[[Path], object], str]] = {}
    for kind, reader in READERS.items():
        targets[f"import {kind.value}"] = partial(_read_format, kind), f"file{reader.endings[0]}"
    for kind in (Format.TSV, Format.CSV, Format.JSONL):
        skipping = partial(_read_format, kind, skip=True)
        targets[f"import {kind.value}, skipping"] = skipping, "file"
    dated = partial(_read_format, Format.CSV, dialect=Dialect(time="when"))
    targets["import dated"] = dated, "file.csv"
    for ending in (".tsv", ".csv", ".jsonl", ".parquet"):
        targets[f"questions {ending}"] = _read_questions, f"questions{ending}"
    for ending in (".tsv", ".csv"):
        targets[f"graph {ending}"] = load_dataset, f"graph{ending}"
        targets[f"labels {ending}"] = read_label_file, f"labels{ending}"
        targets[f"candidates {ending}"] = (
            (lambda path: find_candidates(GRAPH, Labels(), names=path)),
            f"candidates{ending}",
        )
    targets["settings"] = (lambda path: build_config(file=path)), "settings.toml"
    return {name: partial(_write_and, *target) for name, target in targets.items()}


READER_TARGETS = _readers()


def _read_run(name: str, template: Path, folder: Path, content: bytes) -> None:
    run = folder / "run"
    if not run.exists():
        shutil.copytree(template, run)
    good = (template / name).read_bytes() if (template / name).exists() else None
    (run / name).write_bytes(content)
    try:
        _use(run, name)
    finally:
        (run / name).unlink() if good is None else (run / name).write_bytes(good)


def _use(run: Path, name: str) -> None:
    """Does what the commands do with a file of a run: goes on with it, or answers, kernels too."""
    if name in ("metrics.json", "events.jsonl"):
        check_resumable(run)
        read_events(run / "events.jsonl")
        return
    reasoner = Reasoner.from_pretrained(run, threads=1)
    if name == "checkpoint.safetensors":
        optimizer = Adam(reasoner.model.parameters())
        load_checkpoint(run / name, reasoner.model, optimizer, Counters())
    elif name == "initial.safetensors":
        load_initial_weights(run, reasoner.config, reasoner.dataset.relations)
    else:
        head, relation = reasoner.graph.entities.names[0], reasoner.graph.relations.names[0]
        reasoner.answer(head=head, relation=relation, k=3)


def run_targets(template: Path) -> dict[str, Target]:
    """Every file of a run folder."""
    return {f"run {name}": partial(_read_run, name, template) for name in RUN_FILES}


def good_inputs(template: Path) -> dict[str, list[bytes]]:
    """What each target reads when nothing is odd."""
    files, inputs = good_files(), {"settings": [(template / "config.toml").read_bytes()]}
    for name in READER_TARGETS.keys() - inputs:
        what, kind, *_ = name.replace(",", "").replace(".", "").split()
        inputs[name] = files.get(f"{what} {kind}") or files[kind]
    for name in RUN_FILES:
        path = template / (name if (template / name).exists() else "model.safetensors")
        inputs[f"run {name}"] = [path.read_bytes()]
    return inputs


def feed(target: Target, folder: Path, content: bytes) -> None:
    """Raises what is no error of ours."""
    said = ""
    try:
        target(folder, content)
    except KnowformerError as error:
        said = str(error)
    assert len(said) < 4000
    assert not any(character in said for character in "\n\r\x1b"), said
