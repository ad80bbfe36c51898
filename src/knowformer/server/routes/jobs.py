"""Jobs: a file of questions in, a file of answers out, whenever it is done."""

from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse

from knowformer.errors import require_package
from knowformer.server.jobs import Job, JobFormat
from knowformer.server.problems import Problem
from knowformer.server.routes.shared import (
    JobId,
    TheService,
    Writer,
    file_body,
    refusals,
    upload_format,
)
from knowformer.server.schemas.jobs import JobsResponse
from knowformer.server.settings import MAX_ANSWERS

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
FORMATS: dict[str, JobFormat] = {
    "text/tab-separated-values": "tsv",
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.parquet": "parquet",
}
MEDIA_TYPES = {kind: media_type for media_type, kind in FORMATS.items()}
REFUSALS = refusals(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INSUFFICIENT_STORAGE,
)


@router.post(
    "",
    status_code=202,
    response_model=Job,
    responses=REFUSALS,
    openapi_extra=file_body(FORMATS, example="aspirin\ttreats\t?\n"),
)
async def add(
    request: Request,
    service: TheService,
    caller: Writer,
    k: Annotated[int, Query(ge=1, le=MAX_ANSWERS)] = 10,
    new_only: bool = False,
    format: JobFormat = "tsv",  # noqa: A002 - the name of the parameter
) -> Any:
    """Upload questions, one a row: head, relation, tail, with ? for what is asked."""
    questions = upload_format(request, FORMATS)
    if "parquet" in (questions, format):
        require_package("pyarrow", extra="frames", purpose="read or write Parquet")
    content = await request.body()
    how: dict[str, Any] = {"questions": questions, "answers": format, "k": k}
    how |= {"new_only": new_only, "author": caller.name}
    return await run_sync(lambda: service.jobs.add(content, **how))


@router.get("", response_model=JobsResponse, responses=refusals())
def jobs(service: TheService) -> Any:
    """All jobs, newest first."""
    return JobsResponse(items=service.jobs.every())


@router.get("/{number}", response_model=Job, responses=REFUSALS)
def job(number: JobId, service: TheService) -> Any:
    """How far a job is."""
    return service.jobs.find(number)


@router.delete("/{number}", response_model=Job, responses=REFUSALS)
def cancel(number: JobId, service: TheService, caller: Writer) -> Any:
    """End a job; one that has ended stays as it is."""
    del caller
    return service.jobs.cancel(number)


@router.get("/{number}/result", response_class=FileResponse, responses=REFUSALS)
def result(number: JobId, service: TheService) -> Any:
    """The answers, once all are there; a file as ``answer --queries --out`` writes it."""
    found = _done(service.jobs.find(number))
    return _file(service.jobs.result(found), MEDIA_TYPES[found.format])


@router.get("/{number}/rejected", response_class=FileResponse, responses=REFUSALS)
def rejected(number: JobId, service: TheService) -> Any:
    """The rows that could not be asked, each with its line and the reason."""
    found = _done(service.jobs.find(number))
    path = service.jobs.rejected(found)
    if not found.rejected or not path.is_file():
        raise Problem(HTTPStatus.NOT_FOUND, "Expected rejected rows, found none: all were asked.")
    return _file(path, MEDIA_TYPES["tsv"])


def _done(job: Job) -> Job:
    if job.state != "done":
        raise Problem(HTTPStatus.CONFLICT, f"Expected a job that is done, got one {job.state}.")
    return job


def _file(path: Path, media_type: str) -> FileResponse:
    return FileResponse(path, media_type=media_type, filename=path.name)
