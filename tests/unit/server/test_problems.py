"""Errors as problem details."""

import pytest
from fastapi import APIRouter

from knowformer.errors import ConflictError, KnowformerError, StorageError, UserError
from knowformer.server.problems import MEDIA_TYPE, status_of
from tests.unit.server.conftest import Client


def test_a_name_that_is_unknown_has_the_sentence_of_the_library_and_names_to_choose(
    client: Client,
) -> None:
    refused = client.post("/v1/answer", json={"head": "plac07", "relation": "next"})
    assert refused.headers["content-type"] == MEDIA_TYPE
    problem = refused.json()
    assert (problem["status"], problem["title"], problem["field"]) == (404, "Not Found", "head")
    assert problem["detail"].startswith("Expected one of 16 entity names, got 'plac07'. Did you")
    assert "place07" in problem["suggestions"]
    assert problem["instance"] == "/v1/answer"
    assert problem["request_id"] == refused.headers["x-request-id"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ('{"head"', 422, "Expected JSON"),
        ("{}", 400, "Expected two of head, relation and tail"),
        ('{"head": 1, "relation": "next"}', 422, "head"),
        ('{"head": "a", "relation": "next", "kk": 1}', 422, "kk"),
        ('{"head": "a", "relation": "next", "k": 1001}', 422, "less than or equal to 1000"),
        ('{"head": "a", "relation": "next", "samples": 33}', 422, "32"),
        ('{"head": "\\ud800", "relation": "next"}', 422, "UTF-8"),
        ("[]", 422, "dictionary"),
    ],
)
def test_a_body_that_is_something_else_is_refused_with_a_sentence(
    client: Client, body: str, status: int, said: str
) -> None:
    headers = {"Content-Type": "application/json"}
    refused = client.post("/v1/answer", content=body, headers=headers)
    assert refused.status_code == status
    assert said in refused.json()["detail"]
    assert refused.json()["detail"].endswith((".", "?"))


def test_other_types_addresses_and_methods_are_refused(client: Client) -> None:
    assert client.post("/v1/answer", content="head=a").status_code == 415
    for method, address, status in [("GET", "/v1/none", 404), ("PUT", "/v1/facts", 405)]:
        refused = client.request(method, address)
        assert (refused.status_code, refused.headers["content-type"]) == (status, MEDIA_TYPE)


@pytest.mark.parametrize(
    ("error", "status"),
    [(ConflictError("a"), 409), (StorageError("a"), 507), (UserError("a"), 400)],
)
def test_errors_of_the_library_have_a_status(error: KnowformerError, status: int) -> None:
    assert status_of(error) == status


def test_our_own_fault_says_nothing_of_the_inside(client: Client) -> None:
    router = APIRouter()

    @router.get("/v1/broken")
    def broken() -> None:
        raise RuntimeError("secret path")

    client.app.router.routes.insert(0, router.routes[0])
    refused = client.get("/v1/broken")
    assert refused.status_code == 500
    assert "secret" not in refused.text
    assert refused.headers["x-request-id"] in refused.text
    assert "content-security-policy" in refused.headers
