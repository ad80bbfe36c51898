"""Questions over HTTP: what ``--json`` prints, whatever else is running."""

from typing import Any

import pytest

from knowformer import Reasoner
from knowformer.answering.responses import AnswersResponse
from tests.unit.server.conftest import Client


def as_printed(reasoner: Reasoner, **asked: Any) -> dict[str, Any]:
    how = {"k": 10, "typical": True}
    return AnswersResponse.of(reasoner.answer(**(how | asked))).content()


def without_additions(response: dict[str, Any]) -> dict[str, Any]:
    answers = [{k: v for k, v in a.items() if k != "status"} for a in response["answers"]]
    return {"query": response["query"], "answers": answers}


@pytest.mark.parametrize(
    "asked",
    [
        {"head": "place00", "relation": "next"},
        {"relation": "skip", "tail": "place03", "k": 3, "new_only": True},
        {"head": "place00", "tail": "place01"},
        {"head": "place04", "relation": "next", "samples": 3, "typical": False},
        {"head": "place04", "relation": "next", "candidates": ["place05", "place01"]},
        {"head": "place04", "relation": "next", "of_type": "skip:tail"},
    ],
)
def test_answers_are_what_the_command_line_prints(
    client: Client, reasoner: Reasoner, asked: dict[str, Any]
) -> None:
    response = client.post("/v1/answer", json=asked)
    assert response.status_code == 200, response.text
    content = response.json()
    assert without_additions(content) == as_printed(reasoner, **asked)
    assert content["snapshot"] == 0
    assert response.headers["knowformer-snapshot"] == "0"


def test_a_status_tells_what_is_known_held_out_and_new(client: Client, reasoner: Reasoner) -> None:
    test = reasoner.dataset.test
    held_out = {
        tuple(fact) for fact in [*test.facts.tolist(), *reasoner.dataset.valid.facts.tolist()]
    }
    names, relations = reasoner.graph.entities.names, reasoner.graph.relations.names
    head, relation, tail = next(iter(held_out))
    asked = {"head": names[head], "relation": relations[relation], "k": 16}
    answers = client.post("/v1/answer", json=asked).json()["answers"]
    status = {answer["entity"]: answer["status"] for answer in answers}
    assert status[names[tail]] == "held_out"
    assert {a["entity"] for a in answers if not a["known"]} == {
        name for name, kind in status.items() if kind == "new"
    }
    assert not set(status.values()) - {"known", "held_out", "new"}


def test_what_cannot_be_asked_is_refused(client: Client) -> None:
    relation = {"head": "place00", "tail": "place01", "candidates": ["next"]}
    assert client.post("/v1/answer", json=relation).status_code == 400
    odd = {"head": "place00", "relation": "next", "of_type": "nothing"}
    assert client.post("/v1/answer", json=odd).status_code == 400
    unknown = {"head": "place00", "relation": "nex", "tail": "place01"}
    refused = client.post("/v1/explain", json=unknown)
    assert (refused.status_code, refused.json()["field"]) == (404, "relation")
    assert refused.json()["suggestions"] == ["next"]


def test_what_if_facts_were_other_than_they_are(client: Client, reasoner: Reasoner) -> None:
    fact = {"head": "place00", "relation": "next", "tail": "place01"}
    also = {"head": "place00", "relation": "next", "tail": "elsewhere"}
    asked = {"head": "place00", "relation": "next", "k": 3, "without": [fact], "with": [also]}
    content = client.post("/v1/what-if", json=asked).json()
    changed = reasoner.with_facts([tuple(also.values())], [tuple(fact.values())])
    for when, of in (("before", reasoner), ("after", changed)):
        own = of.answer(head="place00", relation="next", k=3)
        assert content[when] == AnswersResponse.of(own).content()
    names = {a["entity"] for when in ("before", "after") for a in content[when]["answers"]}
    assert {move["entity"] for move in content["moves"]} == names
    assert client.get("/v1/graph").json()["facts"] == 32
    nothing = client.post("/v1/what-if", json={"head": "place00", "relation": "next"})
    assert nothing.status_code == 400
