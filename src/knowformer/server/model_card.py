"""The model card: where a model comes from and how good it is, from its run folder."""

from pathlib import Path
from typing import Any

from knowformer.live.snapshots import Snapshot
from knowformer.runs.folder import read_environment, read_metrics
from knowformer.server.schemas.graph import ModelResponse
from knowformer.training.events import read_events


def model_card(snapshot: Snapshot) -> ModelResponse:
    """Returns the card of the model behind a snapshot."""
    reasoner = snapshot.reasoner
    stored = read_metrics(reasoner.folder)
    calibration = reasoner.calibration
    return ModelResponse(
        run=reasoner.folder.name,
        dataset=reasoner.dataset.name,
        relations=list(reasoner.dataset.relations),
        settings=reasoner.config.model_dump(mode="json"),
        training={
            "seed": reasoner.config.seed,
            **_training(reasoner.folder),
            **_environment(reasoner.folder),
        },
        metrics={name: value for name, value in stored.items() if name != "validation_baselines"},
        baselines=stored.get("validation_baselines", {}),
        calibration=calibration
        and {
            "event": calibration.event,
            "log_loss": calibration.model_dump(mode="json")["log_loss"],
            "fitted_on": calibration.model_dump(mode="json")["fitted_on"],
        },
        snapshot=snapshot.version,
    )


def _training(folder: Path) -> dict[str, Any]:
    path = folder / "events.jsonl"
    events = read_events(path) if path.is_file() else []
    last: dict[str, Any] = dict(events[-1]) if events else {}
    seconds = last.get("elapsed_seconds")
    return {
        "epochs": last.get("epoch"),
        "steps": last.get("step"),
        "minutes": None if seconds is None else round(seconds / 60, 2),
    }


def _environment(folder: Path) -> dict[str, Any]:
    content = read_environment(folder)
    return {name: content.get(name) for name in ("commit", "versions", "hardware")}
