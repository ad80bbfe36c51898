"""Errors as RFC 9457 problem details, with the sentence that the command line would print."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from knowformer.errors import (
    ConflictError,
    KnowformerError,
    StorageError,
    UserError,
    VocabularyError,
)

MEDIA_TYPE = "application/problem+json"
_logger = logging.getLogger(__name__)


class ProblemDetails(BaseModel):
    """What went wrong, as RFC 9457 lays it out."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Not Found",
                "status": 404,
                "detail": "Expected one of 135 entity names, got 'aspirn'. Did you mean 'aspirin'?",
                "instance": "/v1/answer",
                "suggestions": ["aspirin"],
            }
        }
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    """One sentence, or two: what was expected, what was found, what to do."""
    instance: str
    request_id: str | None = None
    suggestions: list[str] | None = None
    """Names that may have been meant."""
    field: str | None = None
    """Which of head, relation and tail is at fault, if one is."""


class Problem(HTTPException):
    """A request that is refused."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        suggestions: Sequence[str] = (),
        field: str | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.suggestions = list(suggestions)
        self.field = field


class ClientLeftError(Exception):
    """Whoever asked has closed the connection: there is nobody to respond to."""


def problem_response(
    request: Request,
    status: int,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    suggestions: Sequence[str] = (),
    field: str | None = None,
) -> Response:
    """Returns the response that says what went wrong."""
    content = ProblemDetails(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        instance=request.scope["path"],
        request_id=getattr(request.state, "request_id", None),
        suggestions=list(suggestions) or None,
        field=field,
    )
    return JSONResponse(
        content.model_dump(exclude_none=True), status, headers, media_type=MEDIA_TYPE
    )


def status_of(error: KnowformerError) -> HTTPStatus:
    """Returns the status of an error of the library."""
    if isinstance(error, VocabularyError):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, ConflictError):
        return HTTPStatus.CONFLICT
    if isinstance(error, StorageError):
        return HTTPStatus.INSUFFICIENT_STORAGE
    if isinstance(error, UserError):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.INTERNAL_SERVER_ERROR


def first_fault(errors: Sequence[Any]) -> str:
    """Returns the first fault of a request as a sentence."""
    fault = errors[0]
    where = ".".join(str(part) for part in fault["loc"][1:]) or fault["loc"][0]
    if fault["type"] == "json_invalid":
        return f"Expected JSON in the body, got something else at character {where}."
    if fault["type"] == "missing":
        return f"Expected {where} in the request, found none."
    wanted = fault["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"Expected another value of {where}: {wanted}, got {_shown(fault.get('input'))}."


def _shown(value: Any, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def add_problem_handlers(app: FastAPI) -> None:
    """Makes every error of an app a problem."""

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        more: dict[str, Any] = {}
        if isinstance(error, Problem):
            more = {"suggestions": error.suggestions, "field": error.field}
        return problem_response(
            request, error.status_code, _sentence(error), headers=error.headers, **more
        )

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        if _is_other_type(request, error):
            status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            detail = "Expected a body as application/json, got another content type."
            return problem_response(request, status, detail)
        return problem_response(request, status, first_fault(error.errors()))

    def at_fault(request: Request, error: Exception) -> Response:
        assert isinstance(error, KnowformerError)
        return problem_response(request, status_of(error), str(error))

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(KnowformerError, at_fault)


def _sentence(error: HTTPException) -> str:
    if isinstance(error, Problem):
        return error.detail
    if error.status_code == HTTPStatus.NOT_FOUND:
        return "Expected an address of this server, got another one. /openapi.json lists them."
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return "Expected another method at this address. /openapi.json lists them."
    return f"Expected a request that can be read, got: {error.detail}."


def _is_other_type(request: Request, error: RequestValidationError) -> bool:
    """Whether a body was sent as something else than JSON, so that none was read."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    return bool(error.body) and isinstance(error.body, bytes) and not kind.endswith("json")
