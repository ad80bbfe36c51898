"""The app: its document, its page."""

from knowformer.server.app import PAGE
from tests.unit.server.conftest import Client


def test_the_document_has_every_address_with_its_errors_and_examples(client: Client) -> None:
    document = client.get("/openapi.json").json()
    paths = document["paths"]
    assert {"/v1/graph", "/v1/answer", "/v1/facts/upload", "/v1/jobs/{number}/result"} <= set(paths)
    for path, operations in paths.items():
        for operation in operations.values():
            assert operation.get("description"), path
            if path.startswith("/v1/"):
                problem = operation["responses"]["401"]["content"]
                assert list(problem) == ["application/problem+json"], path
    schemas = document["components"]["schemas"]
    for name in ("AnswerRequest", "ExplainRequest", "ChangeRequest", "DecisionRequest"):
        assert schemas[name]["examples"], name


def test_the_page_is_served_and_nothing_beside_it(client: Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert page.content == (PAGE / "index.html").read_bytes()
    for path in ("/..%2fapp.py", "/%2e%2e/app.py", "/js/..%2f..%2fapp.py", "/app.py"):
        assert client.get(path).status_code == 404, path
    scripts = sorted(PAGE.rglob("*.js"))
    script = client.get(f"/{scripts[0].relative_to(PAGE)}")
    assert script.headers["content-type"].startswith("text/javascript")
