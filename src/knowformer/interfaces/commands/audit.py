"""``knowformer audit GRAPH``: what a data set holds, and what would flatter or spoil a result."""

from typing import Annotated

import typer

from knowformer.interfaces.console import JsonOption, err, out, print_json


def command(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="A catalogue name, a folder with train/valid/test.txt, or a triples file.",
        ),
    ],
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Splits a file that has no splits.")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Look a data set over: counts, relations, leaks, unseen entities, and what to do."""
    from knowformer.audit.audit import audit
    from knowformer.interfaces.render.audit import render_audit

    with err.status("looking the data set over"):
        report = audit(graph, seed=seed)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        out.print(render_audit(report))
