"""``knowformer calibrate RUN``: fit probabilities to a run's validation facts."""

from pathlib import Path
from typing import Annotated

import typer

from knowformer.interfaces.console import (
    JsonOption,
    RunOrGraphArgument,
    ThreadsOption,
    err,
    print_json,
    print_line,
)


def command(
    run: RunOrGraphArgument,
    target: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="RUN",
            help="With a graph: a new run folder, which gets the graph, the model that ships with "
            "knowformer, and probabilities that are fitted to a tenth of the graph's facts.",
            show_default=False,
        ),
    ] = None,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit a run's probabilities to its validation facts again, as 'train' does at its end.

    Or make a run without training: the model that ships with knowformer, with probabilities for
    your graph.

    Examples:
        knowformer calibrate runs/mine
        knowformer calibrate facts.tsv --out runs/untrained
    """
    from knowformer.interfaces.progress import Counting
    from knowformer.reasoner import Reasoner
    from knowformer.runs.folder import check_free

    if target is not None:
        check_free(target)  # before half a minute of work
    reasoner = Reasoner.from_pretrained(run, threads=threads)
    with Counting(err, "calibrating") as progress:
        calibration = reasoner.calibrate(target, progress=progress)
    if as_json:
        print_json(calibration.model_dump(mode="json", by_alias=True))
        return
    fitted, loss = calibration.fitted_on, calibration.log_loss
    lines = sum(map(len, calibration.lines.values()))
    print_line(
        f"Fitted on {fitted.facts:,} facts in {fitted.questions:,} of {fitted.sampled_from:,} "
        f"questions; held-out log-loss {loss['chosen']:.6f} a candidate; all relations share a "
        f"curve of kind '{calibration.pooled.kind}', and {lines} relations and sides move it, each "
        "as far as its facts go."
    )
    folder = run if target is None else target
    print_line(f"Written: {folder / 'calibration.json'}")
    print_line(f"How well they hold on facts that were not fitted: knowformer evaluate {folder}")
