"""``knowformer evaluate RUN``: rank a split's facts, and measure the probabilities."""

from typing import Annotated

import typer
from rich.markup import escape

from knowformer.choices import SplitName
from knowformer.interfaces.console import (
    GraphOption,
    JsonOption,
    RunArgument,
    ThreadsOption,
    err,
    out,
    print_json,
    typed_command,
)


def command(
    run: RunArgument,
    split: Annotated[SplitName, typer.Option(help="Facts to rank.")] = "test",
    graph: GraphOption = None,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Rank every fact of a split against all entities, known facts filtered out."""
    from knowformer.interfaces.progress import Counting
    from knowformer.plots.learning_curve import can_draw
    from knowformer.plots.reliability_diagram import draw_reliability
    from knowformer.reasoner import Reasoner
    from knowformer.runs.folder import update_metrics

    reasoner = Reasoner.from_pretrained(run, threads=threads)
    with Counting(err, "ranking") as progress:
        report = reasoner.evaluate(split, graph=graph, progress=progress, command=typed_command())
    content = report.model_dump(mode="json")
    if as_json:
        print_json(content)
    else:
        out.print(report)
        out.print(f"[dim]made by: {escape(typed_command())}[/]", highlight=False, soft_wrap=True)
    if graph is None:  # after printing: the numbers are not lost when they cannot be stored
        update_metrics(run, {split: content})
        if report.calibration is not None and can_draw():
            title = f"{report.protocol.dataset}, {split}"
            draw_reliability(report.calibration, run / f"reliability_{split}.png", title=title)
