"""The gate: tokens, Host and Origin, sizes, headers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knowformer.server.tokens import Tokens, read_tokens
from tests.unit.server.conftest import Client, Serve

READ, WRITE = "reader-0123456789", "writer-0123456789"
FACT = {"head": "place00", "relation": "next", "tail": "place07"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    path = tmp_path / "tokens"
    path.write_text(f"read {READ}\nwrite {WRITE} Ann\n", "utf-8")
    return read_tokens(path)


def test_tokens_decide_who_may_read_and_write(serve: Serve, tokens: Tokens) -> None:
    client = serve(host="0.0.0.0", tokens=tokens)
    for headers in ({}, bearer("x" * 17), {"Authorization": f"Basic {READ}"}):
        refused = client.get("/v1/graph", headers=headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
    assert client.get("/metrics").status_code == 401
    assert client.get("/healthz").status_code == 200  # of interest to whoever keeps it running
    assert client.get("/v1/graph", headers=bearer(READ)).json()["roles"] == ["read"]
    assert client.post("/v1/facts", json=FACT, headers=bearer(READ)).status_code == 403
    made = client.post("/v1/facts", json={**FACT, "author": "Eve"}, headers=bearer(WRITE))
    assert (made.status_code, made.json()["author"]) == (201, "Ann")


def test_a_read_only_server_takes_nothing(serve: Serve) -> None:
    client = serve(read_only=True)
    refused = client.post("/v1/facts", json=FACT)
    assert (refused.status_code, "read-only" in refused.json()["detail"]) == (403, True)
    assert client.delete("/v1/decisions/1").status_code == 403
    assert client.post("/v1/jobs", content="a").status_code == 403
    assert client.get("/v1/graph").json()["roles"] == ["read"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[", ""])
def test_another_name_for_this_machine_is_refused(client: Client, host: str) -> None:
    assert client.get("/v1/graph", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:80"])
def test_its_own_names_are_not(client: Client, host: str) -> None:
    assert client.get("/v1/graph", headers={"Host": host}).status_code == 200


def test_names_may_be_allowed(serve: Serve) -> None:
    client = serve(allowed_hosts=frozenset({"graphs.example"}))
    assert client.get("/healthz", headers={"Host": "Graphs.Example"}).status_code == 200
    assert client.get("/healthz", headers={"Host": "localhost"}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_page_elsewhere_cannot_write(client: Client, headers: dict[str, str]) -> None:
    assert client.post("/v1/facts", json=FACT, headers=headers).status_code == 403
    assert "place07" not in {item["tail"] for item in client.get("/v1/facts").json()["items"]}


def test_the_own_page_can(client: Client) -> None:
    origin = str(client.base_url).rstrip("/")
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    other = {**FACT, "tail": "place09"}
    assert client.post("/v1/facts", json=other, headers=headers).status_code == 201


def test_bodies_have_a_limit_announced_or_not(serve: Serve) -> None:
    client = serve(max_body=1000, max_upload=3000)

    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * 100

    json = {"Content-Type": "application/json"}
    assert client.post("/v1/answer", content=b" " * 2000, headers=json).status_code == 413
    assert client.post("/v1/answer", content=chunks(), headers=json).status_code == 413
    tsv = {"Content-Type": "text/tab-separated-values"}
    assert client.post("/v1/jobs", content=chunks(), headers=tsv).status_code == 202


def test_every_response_has_the_headers_of_a_safe_page(client: Client) -> None:
    refused = client.get("/v1/graph", headers={"Host": "evil.example"})
    for response in (client.get("/v1/graph"), client.get("/none"), refused):
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert len(response.headers["x-request-id"]) == 16
    assert client.get("/v1/graph").headers["cache-control"] == "no-store"
    assert client.get("/").headers["cache-control"] == "no-cache"  # asked for again, if changed
