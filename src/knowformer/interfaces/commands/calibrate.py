"""``knowformer calibrate RUN``: fit probabilities to a run's validation facts."""

from knowformer.interfaces.console import (
    JsonOption,
    RunArgument,
    ThreadsOption,
    err,
    print_json,
    print_line,
)


def command(run: RunArgument, threads: ThreadsOption = 0, as_json: JsonOption = False) -> None:
    """Fit a run's probabilities to its validation facts again, as 'train' does at its end.

    Examples:
        knowformer calibrate runs/mine
    """
    from knowformer.interfaces.progress import Counting
    from knowformer.reasoner import Reasoner

    reasoner = Reasoner.from_pretrained(run, threads=threads)
    with Counting(err, "calibrating") as progress:
        calibration = reasoner.calibrate(progress=progress)
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
    print_line(f"Written: {run / 'calibration.json'}")
    print_line(f"How well they hold on facts that were not fitted: knowformer evaluate {run}")
