"""Runs a server: binds, says where, and stops when it is told to, requests in flight finished."""

import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from knowformer.errors import ConfigError

GRACE = 30  # seconds for requests in flight
MAX_CONNECTIONS = 1024


def bind(host: str, port: int) -> socket.socket:
    """Returns a socket that listens.

    Raises:
        ConfigError: the address is not one of this machine's, or is in use.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(1024)
        except BaseException:
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"Expected to listen at {host}, port {port}, got '{reason}'. Choose another `port` or "
            "`host`."
        ) from None
    return listening


def address_of(listening: socket.socket) -> str:
    """Returns the address to open in a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def make_server(app: FastAPI, *, on_start: Callable[[], None]) -> uvicorn.Server:
    """Returns a server that is not running yet.

    Args:
        app: the app.
        on_start: called once requests are taken.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=1 << 16,
    )
    return _Server(config, on_start)


def run(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serves until Ctrl-C or SIGTERM; requests in flight are finished. A second one ends it."""
    # Uvicorn raises the signal that stopped it again, for whoever was there before: nobody.
    before = {each: signal.signal(each, _ignore) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listening])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tells that it has begun."""
        await super().startup(sockets)
        if self.started:
            self._on_start()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Stopping is under way."""
