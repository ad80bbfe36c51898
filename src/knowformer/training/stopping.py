"""Stop from a callback: the run ends now, as it would at its last limit."""

from collections.abc import Callable
from typing import ParamSpec

Arguments = ParamSpec("Arguments")


class StopTraining(Exception):  # noqa: N818 - no error: a request, as StopIteration is
    """Raised by a callback of ``train`` to end the run after the current step.

    The last weights are validated if they are not yet, the best ones are kept, calibrated and
    written, and the run is recorded as stopped, with the message as the reason.
    """


class StopRequest:
    """Whether a callback has asked for the end of a run, and why."""

    def __init__(self) -> None:
        self.reason: str | None = None
        """None: nobody has asked."""

    def heed(self, callback: Callable[Arguments, None]) -> Callable[Arguments, None]:
        """Returns a callback whose ``StopTraining`` is kept until the loop looks for it.

        A callback speaks up in the middle of a step or of a validation, which is finished first.
        """

        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
            try:
                callback(*args, **kwargs)
            except StopTraining as request:
                self.reason = self.reason or str(request) or "a callback asked for it"

        return call
