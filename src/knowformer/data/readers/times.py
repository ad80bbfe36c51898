"""Times of facts as numbers that sort: numbers as they are, dates by the second."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from knowformer.data.readers.rows import BadRows, Chunk, shorten

HINT = " Times are numbers, or dates such as 2024-05-31 or 2024-05-31T12:00Z, all of one kind."


class TimeColumn:
    """Reads a column of times, all numbers or all ISO 8601 dates; the first one decides which."""

    def __init__(self) -> None:
        self._is_number: bool | None = None

    def parse(
        self, chunk: Chunk, wanted: npt.NDArray[np.bool_], bad_rows: BadRows
    ) -> npt.NDArray[np.float64]:
        """Returns the times of a chunk's last column; unwanted rows may have any.

        Rows whose time cannot be read are taken out of ``wanted``.

        Raises:
            DataError: a time cannot be read, and bad rows are not skipped.
        """
        texts: Sequence[str] = chunk.columns[-1]
        values = np.zeros(len(texts))
        for index in np.flatnonzero(wanted).tolist():
            text = texts[index].strip()
            if self._is_number is None:
                self._is_number = _number(text) is not None
            value = _number(text) if self._is_number else _date(text)
            if value is None:
                wanted[index] = False
                kind = "a number" if self._is_number else "an ISO 8601 date"
                reason = f"Expected {kind} as time, got {shorten(repr(text))}"
                bad_rows.add(chunk.place(index), reason, HINT)
            else:
                values[index] = value
        return values

    def show(self, value: float) -> str:
        """Returns a time as a person writes it."""
        if self._is_number:
            return f"{value:g}" if value != int(value) else str(int(value))
        moment = datetime.fromtimestamp(value, UTC)
        is_midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
        return moment.date().isoformat() if is_midnight else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _date(text: str) -> float | None:
    for form in (text, f"{text}-01"):  # a month stands for its first day
        try:
            moment = datetime.fromisoformat(form)
        except ValueError:
            continue
        try:
            # In years that can be shown again, also where a zone moves them.
            return (
                (moment if moment.tzinfo else moment.replace(tzinfo=UTC))
                .astimezone(UTC)
                .timestamp()
            )
        except (OverflowError, OSError, ValueError):
            return None
    return None
