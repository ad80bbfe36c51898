"""The run's clock: the only place where wall time enters training."""

import time
from collections.abc import Callable


class Clock:
    """Seconds that a run has taken, over all the processes that it was resumed in."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        """Starts at zero.

        Args:
            now: seconds since any fixed moment.
        """
        self._now = now
        self._start = now()

    def add(self, seconds: float) -> None:
        """Counts the seconds that earlier processes took."""
        self._start -= seconds

    def elapsed(self) -> float:
        """Returns the seconds so far."""
        return self._now() - self._start

    def tick(self) -> None:
        """Lets a clock that several processes share show the time; this one always does."""

    def release(self) -> None:
        """Ends the sharing of such a clock."""
