"""The gate: what every request passes before a route sees it, and every response after.

Who asks (tokens), under which name the server was reached and from which page (Host and Origin:
a page elsewhere must not reach a server on this machine, whatever its name resolves to), how much
is sent, and headers that let the page run its own scripts alone.
"""

import secrets
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knowformer.server.problems import ClientLeftError, Problem, problem_response
from knowformer.server.settings import LOCAL_NAMES, Settings
from knowformer.server.tokens import Caller

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
GUARDED = ("/v1/", "/metrics")
UPLOADS = ("/v1/facts/upload", "/v1/jobs")
READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Gate:
    """Refuses requests that must not reach a route; the innermost middleware."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            self._check_origin(request)
            request.state.caller = self._caller(request)
            limit = self._limit(request)
        except Problem as refusal:
            response = problem_response(
                request, refusal.status_code, refusal.detail, headers=refusal.headers
            )
            await response(scope, receive, send)
            return
        await self._app(scope, _limited(receive, limit), send)

    def _check_origin(self, request: Request) -> None:
        """The server was reached under its own name, from its own page or from none."""
        given = request.headers.get("host", "")
        host = _parts(f"//{given}")[0]
        settings = self._settings
        names = settings.allowed_hosts or (LOCAL_NAMES if settings.is_local else None)
        if names is not None and host not in names:
            raise Problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"Expected a name of this server as Host, got {given!r}. Whoever starts the server "
                "can allow other names.",
            )
        origin = request.headers.get("origin")
        is_other = origin is not None and _parts(origin)[1] != given
        site = request.headers.get("sec-fetch-site", "same-origin")
        is_crossing = request.method not in READING and site not in ("same-origin", "none")
        if is_other or is_crossing:
            raise Problem(
                HTTPStatus.FORBIDDEN, "Expected a request from this server's own page, or none."
            )

    def _caller(self, request: Request) -> Caller:
        tokens = self._settings.tokens
        if tokens is None:
            return Caller("write")
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        caller = tokens.find(token.strip()) if kind.lower() == "bearer" else None
        if caller is None and request.scope["path"].startswith(GUARDED):
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                "Expected a token of this server as 'Authorization: Bearer TOKEN', got none that "
                "it knows.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return caller or Caller("read")

    def _limit(self, request: Request) -> int:
        is_upload = request.scope["path"] in UPLOADS
        limit = self._settings.max_upload if is_upload else self._settings.max_body
        announced = request.headers.get("content-length", "0")
        if announced.isascii() and announced.isdigit() and int(announced) > limit:
            raise too_large(limit)
        return limit


def _parts(address: str) -> tuple[str, str]:
    """Returns the host of an address, and the host as it is written with its port."""
    try:
        split = urlsplit(address)
        return split.hostname or "", split.netloc
    except ValueError:  # such as half a bracket
        return "", ""


def too_large(limit: int) -> Problem:
    """Returns the refusal of a body."""
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Expected a body of at most {limit:,} bytes."
    )


def _limited(receive: Receive, limit: int) -> Receive:
    """Counts what arrives: a length need not be announced, nor be true."""
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise too_large(limit)
        return message

    return counted


class Recorded:
    """Gives each request an id, its response the security headers, and the log a line."""

    def __init__(self, app: ASGIApp, record: Any) -> None:
        """Wraps an app; ``record`` is called with a request, its status and its seconds."""
        self._app = app
        self._record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        recording = self._record.begin(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                recording.status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers["X-Request-Id"] = request_id
                is_page = not scope["path"].startswith(GUARDED)
                headers.setdefault("Cache-Control", "no-cache" if is_page else "no-store")
            await send(message)

        try:
            await self._app(scope, receive, with_headers)
        except ClientLeftError:
            pass
        except Exception as error:  # noqa: BLE001 - the one place where our own faults end
            recording.failed(error)
            if recording.status == 0:
                response = problem_response(
                    Request(scope),
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "The server failed; its log says more under the id of this request.",
                )
                await response(scope, receive, with_headers)
        finally:
            recording.end()
