"""``knowformer audit GRAPH``: what a data set holds, and what would flatter or spoil a result."""

from typing import Annotated

import typer

from knowformer.interfaces.console import JsonOption, err, out, print_json


def command(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="A file of facts (head, relation, tail), a folder with train.txt, valid.txt and "
            "test.txt, or a catalogue name.",
        ),
    ],
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Random seed for splitting a file.")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Check a data set: counts, and what could make scores misleading, with what to do.

    Examples:
        knowformer audit facts.tsv
        knowformer audit wn18rr
    """
    from knowformer.audit.audit import audit
    from knowformer.interfaces.render.audit import render_audit

    with err.status("checking the data set"):
        report = audit(graph, seed=seed)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        out.print(render_audit(report))
