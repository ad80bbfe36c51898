"""``knowformer serve``: the same bits as the command line, a clean stop, what survives a kill."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import COMMAND, family_triples, write_lines
from tests.server.conftest import Serve, Served, ended

ASKED = {"head": "f0_ann", "relation": "parent_of", "k": 5}


def printed(variables: dict[str, str], *typed: str | Path) -> Any:
    done = subprocess.run(
        [COMMAND, *typed, "--threads", "1", "--json"],
        env=variables,
        capture_output=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def without_additions(content: dict[str, Any]) -> dict[str, Any]:
    for answer in content["answers"]:
        answer.pop("status", None)
    return {"query": content["query"], "answers": content["answers"]}


@pytest.mark.slow
def test_answers_are_what_the_command_line_prints_and_facts_survive_a_kill(
    serve: Serve, run: Path, variables: dict[str, str]
) -> None:
    served = serve(run)
    answers = served.client.post("/v1/answer", json=ASKED).json()
    question = ["answer", run, "--head", "f0_ann", "--relation", "parent_of", "-k", "5"]
    assert without_additions(answers) == printed(variables, *question)
    fact = {"head": "f0_ann", "relation": "parent_of", "tail": "new child"}
    assert served.client.post("/v1/facts", json=fact).status_code == 201
    served.process.kill()
    served.process.wait(60)
    again = serve(run)
    assert again.client.get("/v1/facts").json()["items"][0]["tail"] == "new child"
    assert again.client.get("/v1/graph").json()["snapshot"] == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="servers are forked")
def test_what_clients_had_acknowledged_survives_kill_9_and_nothing_is_half_there() -> None:
    killing = [sys.executable, "-m", "tests.server.kill_server"]
    done = subprocess.run(
        [*killing, "--kills", "2", "--seconds", "1"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert json.loads(done.stdout.splitlines()[-1])["kills"] == 2


def stop_while_asking(served: Served, number: signal.Signals) -> list[int]:
    """Sends a signal while a question is being answered; returns the statuses of the answers."""
    statuses: list[int] = []

    def ask() -> None:
        slow = {"head": "f0_ann", "tail": "f1_ann", "samples": 32}
        statuses.append(served.client.post("/v1/answer", json=slow).status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    while (
        "scoring_batch_questions_count 0.0"
        in httpx.get(f"{served.client.base_url}metrics", trust_env=False).text
    ):
        time.sleep(0.01)
    with ended(served.process):
        served.process.send_signal(number)
    asking.join(60)
    return statuses


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_finishes_what_is_in_flight(serve: Serve, run: Path, number: signal.Signals) -> None:
    served = serve(run)
    assert stop_while_asking(served, number) == [200]
    assert served.process.returncode == 0


@pytest.mark.slow
def test_a_second_server_on_one_store_is_refused_with_a_sentence(
    serve: Serve, run: Path, variables: dict[str, str]
) -> None:
    serve(run)
    typed = [COMMAND, "serve", run, "--port", "0"]
    refused = subprocess.run(typed, env=variables, capture_output=True, text=True, timeout=120)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith("error: Expected")


@pytest.mark.slow
def test_a_graph_is_served_by_the_shipped_model_with_its_store_beside_it(
    serve: Serve, tmp_path: Path
) -> None:
    graph = write_lines(tmp_path / "family.tsv", family_triples("f", 8))
    content = graph.read_bytes()
    served = serve(graph)
    answers = served.client.post("/v1/answer", json=ASKED).json()["answers"]
    assert {answer["status"] for answer in answers} <= {"known", "new"}, "nothing is held out"
    for path in ("/v1/graph", "/v1/model", "/v1/audit", "/v1/facts"):
        assert served.client.get(path).status_code == 200, path
    fact = {"head": "f0_ann", "relation": "parent_of", "tail": "new child"}
    assert served.client.post("/v1/facts", json=fact).status_code == 201
    assert (tmp_path / "family.tsv.live.sqlite").is_file()
    assert graph.read_bytes() == content


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of another process")
def test_a_full_disk_is_said_nothing_is_half_written_and_the_server_goes_on(
    serve: Serve, run: Path
) -> None:
    import resource

    served, fact = serve(run), {"head": "f0_ann", "relation": "parent_of", "tail": "new child"}
    assert served.client.post("/v1/facts", json=fact).status_code == 201

    def write() -> list[httpx.Response]:
        rows = {"Content-Type": "text/tab-separated-values"}
        return [
            served.client.post("/v1/facts", json=fact | {"tail": "another"}),
            served.client.post("/v1/facts/upload", content="f0_ann\tparent_of\tone", headers=rows),
            served.client.post("/v1/decisions", json=fact | {"verdict": "accept"}),
            served.client.post("/v1/jobs", content="f0_ann\tparent_of\t?", headers=rows),
        ]

    # No file may grow any more, which is what a full disk comes to.
    limits = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (1, -1))
    for refused in write():
        assert refused.status_code == 507, refused.text
        assert refused.json()["detail"].startswith("Expected to ")
    assert served.client.get("/v1/graph").json()["snapshot"] == 1
    assert served.client.post("/v1/answer", json=ASKED).status_code == 200
    assert list((run / "live.jobs").glob("*/*")) == []
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, limits)
    for taken in write():
        assert taken.is_success, taken.text
    assert served.client.get("/v1/graph").json()["snapshot"] == 3
