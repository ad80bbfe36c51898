"""A server in a thread: a model with weights as they are drawn, on a ring of places."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from knowformer import ModelConfig, Reasoner, RunConfig
from knowformer.data.dataset import Dataset
from knowformer.graph.inverse import num_with_inverses
from knowformer.live.snapshots import LiveGraph
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.runs.folder import Bundle
from knowformer.seeding import generator
from knowformer.server.app import make_app
from knowformer.server.running import address_of, bind, make_server
from knowformer.server.service import Service
from knowformer.server.settings import Settings

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=2)


class Client(httpx.Client):
    """Asks a server of this process, of which a test may look at the inside."""

    def __init__(self, app: FastAPI, address: str) -> None:
        super().__init__(base_url=address, timeout=120, trust_env=False)
        self.app = app
        self.service: Service = app.state.service


Serve = Callable[..., Client]


@pytest.fixture(scope="session")
def reasoner(ring: Dataset) -> Reasoner:
    return make_reasoner(ring)


def make_reasoner(ring: Dataset) -> Reasoner:
    model = KnowFormer(SMALL, num_with_inverses(len(ring.relations)))
    initialize(model, generator=generator(0, "init"))
    config = RunConfig(model=SMALL, threads=1)
    bundle = Bundle(Path("run"), config, ring, model.eval(), "softmax")
    return Reasoner(bundle, ring.test.known_graph(), threads=1)


@pytest.fixture
def service(reasoner: Reasoner, tmp_path: Path) -> Service:
    return make_service(reasoner, tmp_path)


def make_service(reasoner: Reasoner, folder: Path, **settings: Any) -> Service:
    live = LiveGraph.open(reasoner, folder / "live.sqlite")
    return Service(live, Settings(**settings), jobs=folder / "jobs")


@contextmanager
def running(app: FastAPI) -> Iterator[Client]:
    """Serves an app at a free port of this machine."""
    started = Event()
    with bind("127.0.0.1", 0) as listening:
        server = make_server(app, on_start=started.set)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        assert started.wait(60)
        with Client(app, address_of(listening)) as client:
            yield client
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def serve(reasoner: Reasoner, tmp_path: Path) -> Iterator[Serve]:
    """Starts a server with settings; it stops after the test."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Client:
            app = make_app(make_service(reasoner, tmp_path, **settings))
            return stack.enter_context(running(app))

        yield start


@pytest.fixture(scope="module")
def client(reasoner: Reasoner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server that the tests of a module share: starting one takes longer than asking it."""
    with running(make_app(make_service(reasoner, tmp_path_factory.mktemp("shared")))) as client:
        yield client
