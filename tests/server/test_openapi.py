"""Requests made up from the OpenAPI document: none of them may be our fault.

A few hundred in ``./check``; ``KNOWFORMER_EXAMPLES=280`` makes so many for each operation, and
``--log-cli-level=INFO`` says how they ended.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from knowformer import Reasoner
from knowformer.data.dataset import Dataset
from knowformer.server.app import make_app
from tests.unit.server.conftest import Client, make_reasoner, make_service, running

_logger = logging.getLogger(__name__)
CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance]
LIMIT = 600.0  # seconds; the first explanation compiles, and a machine may be busy
EXAMPLES = int(os.environ.get("KNOWFORMER_EXAMPLES", "12"))
ENTITIES = [f"place{number:02d}" for number in range(16)]
RELATIONS = ["next", "skip"]


@pytest.fixture(scope="module")
def reasoner(ring: Dataset) -> Reasoner:
    return make_reasoner(ring)


@pytest.fixture(scope="module")
def client(reasoner: Reasoner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    with running(make_app(make_service(reasoner, folder, time_limit=LIMIT))) as client:
        yield client


def with_known_names(draw: st.DataObject, body: Any) -> Any:
    """Puts names of the graph in the place of made-up ones, half of the time: else all is 404."""
    if isinstance(body, list):
        return [with_known_names(draw, each) for each in body]
    if not isinstance(body, dict) or not draw.draw(st.booleans()):
        return body
    known = {
        name: draw.draw(st.sampled_from(RELATIONS if name == "relation" else ENTITIES))
        for name in body.keys() & {"name", "head", "relation", "tail", "first", "second"}
        if body[name] is not None
    }
    return {name: with_known_names(draw, value) for name, value in (body | known).items()}


def test_no_request_is_our_fault(client: Client) -> None:
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    address = str(client.base_url).rstrip("/")
    counted: Counter[int] = Counter()
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), draw=st.data())
        def ask(case: Any, draw: st.DataObject) -> None:
            case.body = with_known_names(draw, case.body)
            case.query = with_known_names(draw, case.query)
            response = case.call(base_url=address, timeout=2 * LIMIT)
            counted[response.status_code] += 1
            assert response.status_code < 500 or response.status_code == 503, response.text
            if response.status_code >= 400:
                assert response.headers["content-type"] == ["application/problem+json"]
            else:
                case.validate_response(response, checks=CHECKS)

        ask()
    _logger.info("%d requests, by status: %s", sum(counted.values()), dict(sorted(counted.items())))
    # Of some operations there are few requests that differ, or one.
    assert sum(counted.values()) >= 19 * EXAMPLES
