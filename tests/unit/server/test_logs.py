"""The request log."""

import json
import logging
import time
from threading import Event
from typing import Any

import httpx
import pytest

from knowformer.server.logs import REQUESTS
from tests.unit.server.conftest import Client, Serve


def test_a_line_says_what_was_asked_and_no_secret(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, REQUESTS.name)
    headers = {"Authorization": "Bearer secret-0123456789"}
    done = client.get("/v1/entities", params={"q": "private"}, headers=headers)
    line = _line_of(done.headers["x-request-id"], caplog)
    assert (line["method"], line["route"], line["status"]) == ("GET", "/v1/entities", 200)
    assert "secret" not in caplog.text
    assert "private" not in caplog.text


def _line_of(request_id: str, caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """Returns what was logged of a request; the server logs after its client has the answer."""
    for _ in range(100):
        records = [record for record in caplog.records if record.name == REQUESTS.name]
        lines = [json.loads(record.message) for record in records]
        found = [line for line in lines if line["request_id"] == request_id]
        if found:
            assert len(found) == 1
            return found[0]
        time.sleep(0.02)
    raise AssertionError("the request was not logged")


def test_a_client_that_leaves_is_recorded_as_such(serve: Serve) -> None:
    client = serve()
    while not client.service.is_ready:
        client.get("/readyz")
    leave = Event()
    held = client.service.queue._thread.submit(lambda: leave.wait(20))
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/answer", json={"head": "place00", "relation": "next"}, timeout=0.3)
    counted = ""
    for _ in range(100):
        counted = client.get("/metrics").text
        if 'route="/v1/answer",status="499"' in counted:
            break
        time.sleep(0.02)
    leave.set()
    assert held.result(20)
    assert 'route="/v1/answer",status="499"' in counted
