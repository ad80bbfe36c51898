"""Facts that arrive while the graph is asked: add, remove, list, undo, upload, export."""

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from knowformer.errors import VocabularyError
from knowformer.live.export import ExportFormat, export_facts
from knowformer.live.facts import Change, ChangeResult
from knowformer.live.upload import UploadFormat, upload
from knowformer.server.graph_facts import named_fact
from knowformer.server.routes.shared import (
    EXPORT,
    Before,
    Key,
    Limit,
    Number,
    TheService,
    Writer,
    author_of,
    export_response,
    file_body,
    on_snapshot,
    refusals,
    upload_format,
)
from knowformer.server.schemas.changes import (
    ChangeItem,
    ChangeRequest,
    ChangeResponse,
    ChangesResponse,
    UploadResponse,
)
from knowformer.server.service import Service

router = APIRouter(prefix="/v1/facts", tags=["facts"])
FORMATS: dict[str, UploadFormat] = {
    "text/tab-separated-values": "tsv",
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
}
WRITING = refusals(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.INSUFFICIENT_STORAGE,
)


@router.get("", response_model=ChangesResponse, responses=refusals())
def changes(service: TheService, limit: Limit = 50, before: Before = None) -> Any:
    """Changes of the graph, newest first, each with who, when, why and from where."""
    snapshot = service.snapshot()
    page = service.live.changes(limit=limit, before=before)
    labels = snapshot.reasoner.labels
    items = [ChangeItem.of(change, labels) for change in page.items]
    content = ChangesResponse(items=items, next=page.next, snapshot=snapshot.version)
    return on_snapshot(content, snapshot.version)


@router.post(
    "",
    status_code=201,
    response_model=ChangeResponse,
    responses={200: {"model": ChangeResponse, "description": "Nothing to change."}, **WRITING},
)
def change(asked: ChangeRequest, service: TheService, caller: Writer, key: Key = None) -> Any:
    """Add or remove a fact; it is stored for good when the response arrives.

    Entities may be new. 200 instead of 201: there was nothing to change.
    """
    wanted = Change(*asked.triple, action=asked.action, why=asked.why, source=asked.source)
    author = author_of(caller, asked.author)
    try:
        result = service.live.change([wanted], author=author, key=key)
    except VocabularyError as error:
        raise service.unknown_relation(asked.relation, error) from None
    if result.stored:
        return _made(service, result, HTTPStatus.CREATED)
    named = named_fact(service.live.snapshot(), *asked.triple).model_dump()
    content = ChangeResponse(
        **named, id=None, action=asked.action, unchanged=True, snapshot=result.version
    )
    return on_snapshot(content, result.version)


@router.post(
    "/upload",
    response_model=UploadResponse,
    responses=WRITING,
    openapi_extra=file_body(FORMATS, example="aspirin\ttreats\theadache\n"),
)
async def upload_file(
    request: Request,
    service: TheService,
    caller: Writer,
    key: Key = None,
    dry_run: Annotated[
        bool, Query(description="Say what would be done, and store nothing.")
    ] = False,
) -> Any:
    """Upload facts, one a row; all good rows are stored together, bad ones are told one by one."""
    how: dict[str, Any] = {"kind": upload_format(request, FORMATS), "author": caller.name}
    content = await request.body()
    result = await run_sync(lambda: upload(service.live, content, key=key, dry_run=dry_run, **how))
    told = asdict(result)
    return on_snapshot(UploadResponse(**told, snapshot=told.pop("version")), result.version)


@router.get("/export", response_class=StreamingResponse, responses=EXPORT)
def export(service: TheService, format: ExportFormat = "tsv") -> Any:  # noqa: A002
    """The changes that tell the graph from the one that was loaded, as a file."""
    return export_response("facts", export_facts(service.live, format), format)


@router.delete("/{number}", response_model=ChangeResponse, responses=WRITING)
def undo(number: Number, service: TheService, caller: Writer) -> Any:
    """Take a change back, by another change; one that is taken back already stays so."""
    result = service.live.undo(number, author=caller.name)
    if result.stored:
        return _made(service, result, HTTPStatus.OK)
    (earlier,) = service.live.changes(limit=1, before=number + 1).items
    item = ChangeItem.of(earlier, service.live.snapshot().reasoner.labels).model_dump()
    content = ChangeResponse(**item, unchanged=True, snapshot=result.version)
    return on_snapshot(content, result.version)


def _made(service: Service, result: ChangeResult, status: HTTPStatus) -> Any:
    item = ChangeItem.of(result.stored[0], service.live.snapshot().reasoner.labels).model_dump()
    content = ChangeResponse(
        **item, new_entities=list(result.new_entities), snapshot=result.version
    )
    return on_snapshot(content, result.version, status)
