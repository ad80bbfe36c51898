"""events.jsonl: an append-only record of a run, one JSON object a line."""

import json
from pathlib import Path
from typing import Any

from knowformer.errors import StorageError

Event = dict[str, Any]


class EventLog:
    """Appends events; on resume the lines written after the checkpoint are dropped."""

    def __init__(self, path: Path, *, keep_bytes: int = 0) -> None:
        self._path = path
        self._write(b"", mode="ab")  # makes the file
        with path.open("r+b") as file:
            # Whole lines only: the record may have been lost or cut while the checkpoint was kept.
            file.truncate(file.read(keep_bytes).rfind(b"\n") + 1)

    @property
    def num_bytes(self) -> int:
        """Returns the length of the record, to be stored in a checkpoint."""
        return self._path.stat().st_size

    def append(self, event: Event) -> None:
        """Writes one event as one line."""
        self._write(json.dumps(event).encode() + b"\n", mode="ab")

    def _write(self, line: bytes, *, mode: str) -> None:
        try:
            with self._path.open(mode) as file:
                file.write(line)
        except OSError as error:
            raise StorageError(
                f"Expected to write {self._path}, got '{error.strerror}'. Free some space; the "
                "run goes on from its last checkpoint with `resume=True`."
            ) from error


def read_events(path: Path) -> list[Event]:
    """Reads the events of a run."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]
