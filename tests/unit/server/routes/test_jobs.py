"""Jobs over HTTP."""

import time

from tests.unit.server.conftest import Client

TSV = {"Content-Type": "text/tab-separated-values; charset=utf-8"}


def test_questions_go_up_and_answers_come_down(client: Client) -> None:
    questions = "place00\tnext\t?\nplace99\tnext\t?\n"
    how = {"k": 2, "format": "jsonl"}
    job = client.post("/v1/jobs", content=questions, headers=TSV, params=how)
    assert (job.status_code, job.json()["state"]) == (202, "queued")
    address = f"/v1/jobs/{job.json()['id']}"
    end = time.monotonic() + 30
    while (state := client.get(address).json())["state"] != "done":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert (state["done"], state["rejected"]) == (2, 1)
    result = client.get(f"{address}/result")
    assert result.headers["content-type"].startswith("application/x-ndjson")
    assert "answers.jsonl" in result.headers["content-disposition"]
    assert result.text.count("\n") == 1
    assert "place99" in client.get(f"{address}/rejected").text
    assert client.delete(address).json()["state"] == "done"
    assert client.get("/v1/jobs").json()["items"][0]["id"] == job.json()["id"]


def test_other_content_and_other_ids_are_refused(client: Client) -> None:
    assert client.post("/v1/jobs", content="a").status_code == 415
    assert client.get("/v1/jobs/0123456789abcdef").status_code == 404
    assert client.get("/v1/jobs/0123456789abcdef/result").status_code == 404
    assert client.get("/v1/jobs/..%2f..%2flive.sqlite/result").status_code in (404, 422)
