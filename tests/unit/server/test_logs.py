"""The request log."""

import json
import logging
import time
from threading import Event

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
    lines = [
        json.loads(record.message) for record in caplog.records if record.name == REQUESTS.name
    ]
    (line,) = [each for each in lines if each["request_id"] == done.headers["x-request-id"]]
    assert (line["method"], line["route"], line["status"]) == ("GET", "/v1/entities", 200)
    assert "secret" not in caplog.text
    assert "private" not in caplog.text


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
