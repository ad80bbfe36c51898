"""Answers and explanations over HTTP are the library's own, whatever else is running."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from knowformer import Reasoner
from knowformer.data.dataset import Dataset
from knowformer.server.app import make_app
from tests.unit.server.conftest import Client, make_reasoner, make_service, running
from tests.unit.server.routes.test_questions import as_printed, without_additions


@pytest.fixture(scope="module")
def reasoner(ring: Dataset) -> Reasoner:
    return make_reasoner(ring)


@pytest.fixture(scope="module")
def client(reasoner: Reasoner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running(make_app(make_service(reasoner, tmp_path_factory.mktemp("bits")))) as client:
        yield client


def test_answers_are_the_same_bits_whatever_else_is_running(
    client: Client, reasoner: Reasoner
) -> None:
    asked = [{"head": f"place{n:02d}", "relation": r} for n in range(16) for r in ("next", "skip")]
    alone = [as_printed(reasoner, **each) for each in asked]

    def ask(each: dict[str, Any]) -> dict[str, Any]:
        return without_additions(client.post("/v1/answer", json=each).json())

    explained = {"head": "place00", "relation": "skip", "tail": "place02"}
    with ThreadPoolExecutor(16) as pool:
        explaining = [pool.submit(client.post, "/v1/explain", json=explained) for _ in range(2)]
        together = list(pool.map(ask, asked))
    assert together == alone
    own = reasoner.explain(**explained, k=3, num_prototypes=3).model_dump(mode="json")
    for each in explaining:
        content = each.result().json()
        assert content.pop("snapshot") == 0
        assert content | {"seconds": 0} == own | {"seconds": 0}


def test_two_answers_are_explained_side_by_side(client: Client, reasoner: Reasoner) -> None:
    asked = {"head": "place00", "relation": "next", "first": "place01", "second": "place05"}
    content = client.post("/v1/compare", json=asked).json()
    for side, entity in (("first", "place01"), ("second", "place05")):
        own = reasoner.explain(
            head="place00", relation="next", tail=entity, k=3, num_prototypes=3
        ).model_dump(mode="json")
        shown = content[side]
        assert shown["explanation"] | {"seconds": 0} == own | {"seconds": 0}
        assert (shown["entity"], shown["rank"]) == (entity, own["standing"]["rank_among_all"])
    refused = client.post("/v1/compare", json={**asked, "second": "place77"})
    assert (refused.status_code, refused.json()["field"]) == (404, "second")
    both = client.post("/v1/compare", json={**asked, "tail": "place01"})
    assert both.status_code == 400
