"""``knowformer serve RUN``: answers over HTTP, and the workbench."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from knowformer.errors import ConfigError, require_package
from knowformer.interfaces.console import (
    GraphOption,
    RunOrGraphArgument,
    ThreadsOption,
    err,
    print_line,
)

WHO = "Who may reach it"

_logger = logging.getLogger(__name__)


def command(
    run: RunOrGraphArgument,
    graph: GraphOption = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes a free one.")
    ] = 8400,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where facts and decisions are kept; if not given, live.sqlite in the run folder, "
            "or beside the graph's file.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Where to listen: an address of this machine. Others than it need --token-file.",
            rich_help_panel=WHO,
        ),
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Who may ask: a line is 'read TOKEN' or 'write TOKEN', and a name if wanted.",
            rich_help_panel=WHO,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name that the server is reached by, such as that of a proxy; may be repeated.",
            rich_help_panel=WHO,
        ),
    ] = None,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Take no facts, decisions or jobs.", rich_help_panel=WHO),
    ] = False,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Readable names: a line is an id, a tab and a name."),
    ] = None,
    threads: ThreadsOption = 0,
    log_requests: Annotated[
        bool,
        typer.Option("--log-requests", help="Print a line of JSON for every request."),
    ] = False,
) -> None:
    """Serve a run: a page to ask, look at reasons and decide, and the same over HTTP.

    Examples:
        knowformer serve runs/mine
        knowformer serve facts.tsv
        knowformer serve runs/mine --host 0.0.0.0 --token-file tokens.txt
    """
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        require_package(package, extra="server", purpose="serve a run")
    from knowformer.live.snapshots import LiveGraph
    from knowformer.reasoner import Reasoner
    from knowformer.runs.folder import holds_run
    from knowformer.server.app import make_app
    from knowformer.server.logs import log_requests_as_json
    from knowformer.server.running import address_of, bind, make_server
    from knowformer.server.running import run as run_server
    from knowformer.server.service import Service
    from knowformer.server.settings import Settings
    from knowformer.server.tokens import read_tokens
    from knowformer.system.allocator import keep_loaded_objects

    settings = Settings(
        host=host,
        tokens=None if token_file is None else read_tokens(token_file),
        read_only=read_only,
        allowed_hosts=frozenset(name.lower() for name in allow_host or []),
    )
    if settings.tokens is None and not settings.is_local:
        raise ConfigError(
            f"Expected --token-file with --host {host}, which others can reach, got none. Write "
            "a line such as 'write TOKEN' to a file, or leave out --host."
        )
    listening = bind(host, port)
    with err.status("loading the run"):
        reasoner = Reasoner.from_pretrained(run, graph=graph, labels=labels, threads=threads)
        # A graph in the place of a run: nothing of it is held out from the model that ships.
        named = graph or (str(run) if reasoner.is_shipped else None)
        is_run = holds_run(run)
        kept = store or _store_of(run if is_run or graph is None else Path(graph))
        live = LiveGraph.open(reasoner, kept)
        service = Service(live, settings, jobs=kept.with_suffix(".jobs"), graph_name=named)
    if store is None and not is_run:
        _logger.info("Facts and decisions are kept in %s.", kept)
    with listening:
        log_requests_as_json(every=log_requests)
        address = address_of(listening)
        server = make_server(
            make_app(service, on_ready=keep_loaded_objects),
            on_start=lambda: print_line(f"Open {address} (stop with Ctrl-C)"),
        )
        run_server(server, listening)


def _store_of(served: Path) -> Path:
    """Returns the store in a folder, beside a file, or here if it is a name of the catalogue."""
    from knowformer.live.snapshots import STORE_FILE

    return (
        served / STORE_FILE if served.is_dir() else served.with_name(f"{served.name}.{STORE_FILE}")
    )
