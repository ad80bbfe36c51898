"""The request log: a JSON object a line, without bodies, queries or tokens."""

import json
import logging
import time
import traceback
from typing import Any

from knowformer.server.metrics import Metrics

REQUESTS = logging.getLogger("knowformer.server.requests")
LEFT = 499  # the client closed the connection before there was a response, as nginx has it


class RequestLog:
    """Records requests in the log and in the metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def begin(self, scope: Any) -> "Recording":
        """Starts the clock of a request."""
        return Recording(scope, self._metrics)


class Recording:
    """One request, from its first byte to the last of its response."""

    def __init__(self, scope: Any, metrics: Metrics) -> None:
        self.status = 0
        self._scope = scope
        self._metrics = metrics
        self._started = time.perf_counter()
        self._error: str | None = None

    def failed(self, error: Exception) -> None:
        """Keeps where our own fault came from, for the log alone."""
        self._error = "".join(traceback.format_exception(error))

    def end(self) -> None:
        """Writes the line."""
        seconds = time.perf_counter() - self._started
        route = getattr(self._scope.get("route"), "path", None) or "other"
        status = self.status or LEFT
        method = self._scope["method"]
        known = method if method in ("GET", "HEAD", "POST", "DELETE") else "other"
        self._metrics.requests.labels(known, route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        level = logging.ERROR if self._error else logging.INFO
        if not REQUESTS.isEnabledFor(level):
            return
        state, client = self._scope.get("state", {}), self._scope.get("client")
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "request_id": state.get("request_id"),
            "client": client[0] if client else None,
            "caller": getattr(state.get("caller"), "name", None),
            "method": known,
            "route": route,
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
            **({"error": self._error} if self._error else {}),
        }
        REQUESTS.log(level, json.dumps(line))


def log_requests_as_json(*, every: bool) -> None:
    """Prints the log to standard error as it is, a line for each request that fails or for all."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    REQUESTS.handlers = [handler]
    REQUESTS.setLevel(logging.INFO if every else logging.ERROR)
    REQUESTS.propagate = False  # the command line would print each line as a note
