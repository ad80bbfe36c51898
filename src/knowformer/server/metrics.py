"""What Prometheus reads at /metrics."""

from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """Counters of one server; a process may hold several, as tests do."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        every: dict[str, Any] = {"registry": self.registry, "namespace": "knowformer"}
        self.requests = Counter(
            "http_requests", "Requests.", ["method", "route", "status"], **every
        )
        self.seconds = Histogram(
            "http_request_seconds", "Seconds of a request.", ["route"], buckets=SECONDS, **every
        )
        self.waiting = Gauge("scoring_waiting", "Questions that wait to be scored.", **every)
        self.batches = Histogram(
            "scoring_batch_questions",
            "Questions that were scored together.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            **every,
        )
        self.refused = Counter("scoring_refused", "Questions refused: too many wait.", **every)
        self.snapshot = Gauge("snapshot", "Version of the graph that is asked.", **every)

    def text(self) -> bytes:
        """Returns the metrics as Prometheus reads them."""
        return generate_latest(self.registry)
