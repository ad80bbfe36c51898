"""Tracker: turns the events of a run into what a service logs; its failures end no training."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, cast

from pydantic import TypeAdapter

from knowformer.storage.atomic_files import write_text
from knowformer.storage.plain_files import read_plain
from knowformer.training.events import Event, StartEvent

TRACKING_FILE = "tracking.json"
"""In the run folder: under which id each service knows the run, so that it goes on there."""

MOST_BYTES = 2**20

_logger = logging.getLogger(__name__)


class Tracker:
    """Base of all trackers: an ``on_event`` callback. A service implements three methods.

    Names of values are the same everywhere: ``training/loss``, ``training/queries_per_second``,
    ``validation/mrr``, ``validation/hits_at_10`` and, at the end, ``final/...``.
    """

    service: ClassVar[str]
    """What people call it."""

    def __init__(self) -> None:
        self._has_failed = False

    def __call__(self, event: Event) -> None:
        """Takes an event; after a first failure none, as a training is worth more than its log."""
        if self._has_failed:
            return
        try:
            self._take(event)
        except Exception as error:  # noqa: BLE001 - whatever a service raises
            self._has_failed = True
            reason = str(error).partition("\n")[0] or type(error).__name__
            _logger.warning(
                "%s tracks this run no longer, the training goes on: %s", self.service, reason
            )

    def start(self, event: StartEvent) -> None:
        """Opens the run in the service, or goes on with it, and logs settings and run folder."""
        raise NotImplementedError

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers of a step."""
        raise NotImplementedError

    def finish(self) -> None:
        """Closes the run in the service."""
        raise NotImplementedError

    def _take(self, event: Event) -> None:
        if event["kind"] == "start":
            self.start(event)
        elif event["kind"] == "training":
            names = ("loss", "queries_per_second", "learning_rate")
            self.log({f"training/{name}": event[name] for name in names}, event["step"])
        elif event["kind"] == "validation":
            metrics = {k: v for k, v in event.items() if k.startswith("valid_")}
            self.log(_numbers(metrics, "validation"), event["step"])
        elif event["kind"] == "end":
            self.log(_numbers(event["metrics"], "final"), event["step"])
            self.finish()


def _numbers(values: Mapping[str, object], under: str) -> dict[str, float]:
    """Returns the numbers of nested values under names that every service takes."""
    numbers: dict[str, float] = {}
    for key, value in values.items():
        name = f"{under}/{key.removeprefix('valid_').replace('@', '_at_')}"
        if isinstance(value, dict):
            numbers |= _numbers(cast("dict[str, object]", value), name)
        elif isinstance(value, int | float):
            numbers[name] = float(value)
    return numbers


def stored_id(run: str, service: str) -> str | None:
    """Returns the id under which a service knows a run."""
    return _stored(run).get(service)


def store_id(run: str, service: str, value: str) -> None:
    """Keeps the id under which a service knows a run, in its folder."""
    ids = _stored(run) | {service: value}
    write_text(Path(run) / TRACKING_FILE, json.dumps(ids, indent=2) + "\n")


def _stored(run: str) -> dict[str, str]:
    """Raises ValueError for a damaged file, which ends the tracking and not the training."""
    path = Path(run) / TRACKING_FILE
    if not path.exists():
        return {}
    return TypeAdapter(dict[str, str]).validate_json(read_plain(path, most=MOST_BYTES))
