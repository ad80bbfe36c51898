"""For whoever runs the server."""

import time

from tests.unit.server.conftest import Client


def test_it_is_alive_at_once_ready_soon_and_counts(client: Client) -> None:
    assert client.get("/healthz").text == "ok"
    end = time.monotonic() + 30
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < end
        time.sleep(0.02)
    client.get("/v1/graph")
    counted = client.get("/metrics").text
    route = 'knowformer_http_requests_total{method="GET",route="/v1/graph",status="200"}'
    assert route in counted
    client.service.is_ready = False
    refused = client.get("/readyz")
    client.service.is_ready = True
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
