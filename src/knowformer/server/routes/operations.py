"""For whoever runs the server: is it alive, is it ready, how is it doing."""

from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from knowformer.server.problems import Problem
from knowformer.server.routes.shared import TheService

router = APIRouter(tags=["operations"])


@router.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """Says that the process answers."""
    return "ok"


@router.get("/readyz", response_class=PlainTextResponse)
async def readyz(service: TheService) -> str:
    """Says that questions are answered at once."""
    if not service.is_ready:
        raise Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "Expected a server that is ready, got one that is starting or stopping.",
            headers={"Retry-After": "1"},
        )
    return "ready"


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(service: TheService) -> Response:
    """Counters for Prometheus."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
