"""Response types of ``--json``; those of answers are in ``answering.responses``."""

from dataclasses import asdict
from typing import Any

from knowformer.answering.responses import Response
from knowformer.data.catalog import CatalogEntry, Kind, locate
from knowformer.importing.importing import ImportResult
from knowformer.tuning.result import BEST_FILE, TuningResult


class DatasetResponse(Response):
    """A catalogue entry with its counts and where its files are, if they are here."""

    name: str
    kind: Kind
    entities: int
    relations: int
    facts: dict[str, int]
    """By split."""
    test_facts: int | None
    embedded: bool
    folder: str | None
    licence: str

    @classmethod
    def of(cls, entry: CatalogEntry) -> "DatasetResponse":
        """Returns a catalogue entry as JSON."""
        folder = locate(entry)
        return cls(
            name=entry.name,
            kind=entry.kind,
            entities=entry.counts.entities,
            relations=entry.counts.relations,
            facts=dict(entry.counts.facts),
            test_facts=(entry.test_graph_counts or entry.counts).facts.get("test"),
            embedded=entry.embedded,
            folder=str(folder) if folder else None,
            licence=entry.licence,
        )


class TrainingResponse(Response):
    """A run that training has left."""

    run: str
    dataset: str
    best_validation: dict[str, Any]
    """As in metrics.json."""
    validation_baselines: dict[str, Any]
    """As in metrics.json: metrics of baselines on the same facts."""


class TrialResponse(Response):
    """A trial of a search."""

    number: int
    state: str
    valid_mrr: float | None
    num_facts: int | None
    settings: dict[str, str]
    error: str | None


class TuningResponse(Response):
    """What a search has found."""

    graph: str
    folder: str
    trials: list[TrialResponse]
    best: TrialResponse
    config: str
    """The file for ``train --config``."""
    command: str

    @classmethod
    def of(cls, result: TuningResult, command: str) -> "TuningResponse":
        """Returns a search as JSON, with the command that trains with what it has found."""
        return cls(
            graph=result.graph,
            folder=str(result.folder),
            trials=[TrialResponse(**asdict(trial)) for trial in result.trials],
            best=TrialResponse(**asdict(result.best)),
            config=str(result.folder / BEST_FILE),
            command=command,
        )


class ImportResponse(Response):
    """What an import has read and written."""

    folder: str
    rows: int
    bad_rows: int
    notes: list[str]
    audit: dict[str, Any]
    """As in audit.json."""

    @classmethod
    def of(cls, result: ImportResult) -> "ImportResponse":
        """Returns an import as JSON."""
        return cls(
            folder=str(result.folder),
            rows=result.num_rows,
            bad_rows=len(result.bad_rows.rows),
            notes=list(result.notes),
            audit=result.audit.model_dump(mode="json"),
        )
