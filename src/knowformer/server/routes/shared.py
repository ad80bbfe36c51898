"""What routes have in common: the service, who asks, and responses that name their snapshot."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Path, Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from knowformer.live.export import MEDIA_TYPES as EXPORT_TYPES
from knowformer.live.export import ExportFormat
from knowformer.live.snapshots import Snapshot
from knowformer.server.jobs import JOB_ID
from knowformer.server.problems import MEDIA_TYPE, ClientLeftError, Problem, ProblemDetails
from knowformer.server.schemas.fields import Text
from knowformer.server.service import Service
from knowformer.server.settings import MAX_PAGE
from knowformer.server.tokens import Caller

Result = TypeVar("Result")
SNAPSHOT = "Knowformer-Snapshot"


ROWS_AT_ONCE = 1000


def _service(request: Request) -> Service:
    return request.app.state.service


def _snapshot(request: Request) -> Snapshot:
    return _service(request).snapshot()


def _caller(request: Request) -> Caller:
    return request.state.caller


def _writer(request: Request) -> Caller:
    """Refuses whoever may not write.

    Raises:
        Problem: the server is read-only, or the token is one for reading.
    """
    if _service(request).settings.read_only:
        raise Problem(
            HTTPStatus.FORBIDDEN, "Expected a server that takes changes, got one that is read-only."
        )
    caller = _caller(request)
    if caller.role != "write":
        raise Problem(HTTPStatus.FORBIDDEN, "Expected a token for writing, got one for reading.")
    return caller


def author_of(caller: Caller, given: str | None) -> str | None:
    """Returns who writes: the owner of the token, else whoever the request says."""
    return caller.name or given


Key = Annotated[
    Text | None,
    Header(
        alias="Idempotency-Key",
        description="The same request again with the same key does nothing and gets the same "
        "response.",
    ),
]
Before = Annotated[int | None, Query(ge=1, lt=2**63, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Number = Annotated[int, Path(ge=1, lt=2**63)]
JobId = Annotated[str, Path(pattern=JOB_ID)]
TheService = Annotated[Service, Depends(_service)]
TheSnapshot = Annotated[Snapshot, Depends(_snapshot)]
AnyCaller = Annotated[Caller, Depends(_caller)]
Writer = Annotated[Caller, Depends(_writer)]


Format = TypeVar("Format", bound=str)


def upload_format(request: Request, formats: Mapping[str, Format]) -> Format:
    """Returns what the body is written in, by its content type.

    Raises:
        Problem: it is none of those.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in formats:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Expected a body as {', '.join(formats)}, got {given or 'no content type'!r}.",
        )
    return formats[given]


def file_body(media_types: Iterable[str], *, example: str) -> dict[str, Any]:
    """Returns a body that is a file, for the OpenAPI document."""
    content: dict[str, dict[str, Any]] = {
        kind: {"schema": {"type": "string"}} for kind in media_types
    }
    next(iter(content.values()))["example"] = example
    return {"requestBody": {"required": True, "content": content}}


def export_response(name: str, chunks: Iterator[bytes], kind: ExportFormat) -> StreamingResponse:
    """Returns a file to be kept, sent while it is written."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'}
    # Rows are few bytes each: handed over one by one, most of the time would go there.
    gathered = iter(lambda: b"".join(islice(chunks, ROWS_AT_ONCE)), b"")
    return StreamingResponse(gathered, media_type=EXPORT_TYPES[kind], headers=headers)


def on_snapshot(content: BaseModel | dict[str, Any], version: int, status: int = 200) -> Any:
    """Returns a response that says, also in a header, which snapshot it is about."""
    if isinstance(content, BaseModel):
        content = content.model_dump(mode="json")
    return JSONResponse({**content, "snapshot": version}, status, {SNAPSHOT: str(version)})


async def unless_left(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Does the work while its client is there; one that leaves cancels it.

    Raises:
        ClientLeftError: it has left.
    """
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise ClientLeftError
    finally:
        for task in (doing, leaving):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await leaving


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refusals(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Returns the errors of a route for the OpenAPI document."""
    always = (
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.MISDIRECTED_REQUEST,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    )
    content = {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}}
    return {
        int(status): {"description": status.phrase, "content": content}
        for status in {*always, *statuses}
    }


EXPORT = {
    200: {
        "description": "The file.",
        "content": {media_type.partition(";")[0]: {} for media_type in EXPORT_TYPES.values()},
    },
    **refusals(HTTPStatus.BAD_REQUEST),
}
