"""The graph, its names and its facts over HTTP."""

from knowformer import Reasoner
from knowformer.audit.audit import audit
from tests.unit.server.conftest import Client


def test_the_graph_says_what_it_is(client: Client, reasoner: Reasoner) -> None:
    graph = client.get("/v1/graph").json()
    assert (graph["entities"], graph["relations"], graph["facts"]) == (16, 2, 32)
    assert graph["roles"] == ["read", "write"]
    held_out = graph["example"]
    assert reasoner.graph.holds([(held_out["head"], held_out["relation"], held_out["tail"])])


def test_names_are_found_as_they_are_typed(client: Client) -> None:
    found = client.get("/v1/entities", params={"q": "PLACE1", "limit": 3}).json()["items"]
    assert [(each["name"], each["match"]) for each in found] == [
        ("place10", "prefix"),
        ("place11", "prefix"),
        ("place12", "prefix"),
    ]
    assert {each["facts"] for each in found} == {4}
    assert len(client.get("/v1/entities").json()["items"]) == 10
    relations = client.get("/v1/relations").json()["items"]
    assert {each["name"]: each["facts"] for each in relations} == {"next": 16, "skip": 16}
    assert client.get("/v1/relations", params={"q": "skp"}).json()["items"][0]["name"] == "skip"


def test_an_entity_has_its_facts_page_by_page(client: Client) -> None:
    asked = {"name": "place03", "limit": 3}
    first = client.get("/v1/entity", params=asked).json()
    second = client.get("/v1/entity", params={**asked, "offset": 3}).json()
    facts = [(f["head"], f["relation"], f["tail"]) for f in [*first["items"], *second["items"]]]
    assert sorted(facts) == [
        ("place01", "skip", "place03"),
        ("place02", "next", "place03"),
        ("place03", "next", "place04"),
        ("place03", "skip", "place05"),
    ]
    assert first["total"] == 4
    assert [(r["relation"], r["as_head"], r["as_tail"]) for r in first["relations"]] == [
        ("next", 1, 1),
        ("skip", 1, 1),
    ]
    only = client.get("/v1/entity", params={"name": "place03", "relation": "next"}).json()
    assert only["total"] == 2
    refused = client.get("/v1/entity", params={"name": "place3"})
    assert (refused.status_code, refused.json()["field"]) == (404, "name")


def test_the_audit_is_that_of_the_data_set(client: Client, reasoner: Reasoner) -> None:
    report = client.get("/v1/audit").json()
    assert report.pop("snapshot") == 0
    assert report == audit(reasoner.dataset).model_dump(mode="json")


def test_the_model_card_says_where_the_model_is_from(client: Client, reasoner: Reasoner) -> None:
    card = client.get("/v1/model").json()
    assert card["relations"] == list(reasoner.dataset.relations)
    assert card["settings"]["model"]["hidden_dim"] == 16
    assert card["training"]["seed"] == reasoner.config.seed
    assert card["calibration"] is None
