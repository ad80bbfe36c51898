"""The app: routes, the gate before them, and what starts and stops with it."""

import asyncio
import mimetypes
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from anyio.to_thread import run_sync
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from knowformer import __version__
from knowformer.server.gate import Gate, Recorded
from knowformer.server.logs import RequestLog
from knowformer.server.problems import add_problem_handlers
from knowformer.server.routes import decisions, facts, graph, jobs, operations, questions
from knowformer.server.service import Service

PAGE = Path(__file__).parent / "page"
ABOUT = (
    "Questions to a trained model and a graph that changes. Every answer names the snapshot of the "
    "graph that it was made on. Errors are RFC 9457 problem details."
)

# Some systems say otherwise, and a browser runs no script of another type.
mimetypes.add_type("text/javascript", ".js")


def make_app(service: Service, *, on_ready: Callable[[], None] = lambda: None) -> FastAPI:
    """Returns the app that serves a run.

    Args:
        service: the run, on a graph that changes.
        on_ready: called once all is loaded, compiled and indexed.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        def warm_up() -> None:
            app.openapi()  # made once, which takes a while
            service.warm_up()
            on_ready()

        service.queue.start()
        service.jobs.start()
        warming = asyncio.ensure_future(run_sync(warm_up))
        yield
        service.is_ready = False
        await service.queue.stop()
        await run_sync(service.long_work.stop)
        await run_sync(service.jobs.stop)
        await asyncio.wait([warming])
        service.live.close()

    app = FastAPI(
        title="knowformer",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    add_problem_handlers(app)
    for each in (graph, questions, facts, decisions, jobs, operations):
        app.include_router(each.router)
    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    app.add_middleware(Gate, settings=service.settings)
    app.add_middleware(Recorded, record=RequestLog(service.metrics))
    return app
