"""Facts over HTTP: the next answer sees them."""

from typing import Any

from tests.unit.server.conftest import Client, Serve


def known(client: Client, head: str) -> set[str]:
    asked = {"head": head, "relation": "next", "k": 99}
    answers = client.post("/v1/answer", json=asked).json()["answers"]
    return {answer["entity"] for answer in answers if answer["known"]}


def test_a_fact_is_seen_by_the_next_answer_and_undone(serve: Serve) -> None:
    client = serve()
    fact = {"head": "place00", "relation": "next", "tail": "new place", "why": "seen"}
    made = client.post("/v1/facts", json={**fact, "source": "a book", "author": "Ann"})
    assert made.status_code == 201
    item: dict[str, Any] = made.json()
    assert item["new_entities"] == ["new place"]
    assert (item["author"], item["why"], item["source"]) == ("Ann", "seen", "a book")
    assert item["snapshot"] == 1
    assert "new place" in known(client, "place00")
    found = client.get("/v1/entity", params={"name": "new place"}).json()["items"]
    assert [each["source"] for each in found] == ["live"]
    assert client.get("/v1/entities", params={"q": "new pl"}).json()["items"][0]["facts"] == 1
    again = client.post("/v1/facts", json=fact)
    assert (again.status_code, again.json()["unchanged"], again.json()["id"]) == (200, True, None)
    undone = client.delete(f"/v1/facts/{item['id']}")
    assert (undone.json()["action"], undone.json()["undoes"]) == ("remove", item["id"])
    assert "new place" not in known(client, "place00")
    assert client.delete(f"/v1/facts/{item['id']}").json()["unchanged"]
    listed = client.get("/v1/facts").json()
    assert [each["undone"] for each in listed["items"]] == [False, True]
    assert listed["snapshot"] == 2
    assert client.get("/v1/graph").json()["added"] == 0


def test_a_key_makes_a_request_once(client: Client) -> None:
    fact = {"head": "place02", "relation": "next", "tail": "place09"}
    key = {"Idempotency-Key": "k-1"}
    first, second = (client.post("/v1/facts", json=fact, headers=key) for _ in range(2))
    assert first.json() == second.json()
    other = client.post("/v1/facts", json={**fact, "tail": "place08"}, headers=key)
    assert other.status_code == 409
    assert client.post("/v1/facts", json=fact, headers={"Idempotency-Key": ""}).status_code == 400


def test_a_relation_that_the_model_does_not_know_is_refused(client: Client) -> None:
    fact = {"head": "place00", "relation": "nxt", "tail": "place03"}
    refused = client.post("/v1/facts", json=fact)
    assert (refused.status_code, refused.json()["suggestions"]) == (404, ["next"])
    assert client.delete("/v1/facts/99999").status_code == 404
    assert client.delete("/v1/facts/..%2Fjob").status_code in (404, 405, 422)


def test_a_file_of_facts_goes_up_with_its_faults_told_and_comes_down(serve: Serve) -> None:
    client = serve()
    rows = "place00\tnext\tplace05\nplace00\tnxt\tplace06\nplace00\tnext\tplace01\nx\n"
    tsv = {"Content-Type": "text/tab-separated-values"}
    tried = client.post("/v1/facts/upload?dry_run=true", content=rows, headers=tsv).json()
    assert (tried["accepted"], tried["unchanged"], tried["snapshot"]) == (1, 1, 0)
    told = client.post("/v1/facts/upload", content=rows, headers=tsv).json()
    assert (told["accepted"], told["unchanged"], told["snapshot"]) == (1, 1, 1)
    assert [each["row"] for each in told["rejected"]] == [2, 4]
    assert "Did you mean 'next'?" in told["rejected"][0]["message"]
    assert client.post("/v1/facts/upload", content=rows).status_code == 415
    exported = client.get("/v1/facts/export")
    assert exported.headers["content-disposition"] == 'attachment; filename="facts.tsv"'
    header, row = exported.text.splitlines()
    assert dict(zip(header.split("\t"), row.split("\t"), strict=True))["tail"] == "place05"
    for kind in ("parquet", "nt"):
        assert client.get("/v1/facts/export", params={"format": kind}).status_code == 200
        assert client.get("/v1/decisions/export", params={"format": kind}).status_code == 200
    assert client.get("/v1/facts/export", params={"format": "../x"}).status_code == 422
