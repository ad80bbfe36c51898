"""Decisions over HTTP."""

from tests.unit.server.conftest import Client

FACT = {"head": "place00", "relation": "skip", "tail": "place09"}


def test_an_accepted_proposal_becomes_a_fact_if_asked_and_goes_with_its_decision(
    client: Client,
) -> None:
    asked = {**FACT, "verdict": "accept", "note": "sure", "rank": 2, "probability": 0.5}
    made = client.post("/v1/decisions", json={**asked, "add_fact": True}).json()
    assert made["fact_id"] == made["snapshot"]
    assert (made["decided_on"], made["note"], made["undone"]) == (0, "sure", False)
    assert client.get("/v1/facts").json()["items"][0]["tail"] == "place09"
    undone = client.delete(f"/v1/decisions/{made['id']}").json()
    assert undone["undone"]
    assert client.get("/v1/graph").json()["added"] == 0
    assert [item["id"] for item in client.get("/v1/decisions").json()["items"]] == [made["id"]]


def test_what_cannot_be_decided_is_refused(client: Client) -> None:
    for asked, status in [
        ({**FACT, "verdict": "maybe"}, 422),
        ({**FACT, "verdict": "reject", "add_fact": True}, 400),
        ({**FACT, "verdict": "accept", "probability": 1.5}, 422),
        ({**FACT, "verdict": "accept", "relation": "no such"}, 404),
    ]:
        assert client.post("/v1/decisions", json=asked).status_code == status, asked
    assert client.delete("/v1/decisions/999").status_code == 404
