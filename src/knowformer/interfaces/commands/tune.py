"""``knowformer tune GRAPH``: search settings by short runs."""

from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from knowformer.interfaces.console import JsonOption, err, out, print_json, print_line
from knowformer.training.clock import Clock

if TYPE_CHECKING:
    from knowformer.tuning.result import TuningResult


def command(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="A catalogue name, a folder with train/valid/test.txt, or a triples file.",
        ),
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FOLDER", help="Trials and best.toml; a search there goes on."
        ),
    ],
    max_minutes: Annotated[
        float,
        typer.Option(metavar="N", help="Time of the whole command, divided among the trials."),
    ],
    trials: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Trials in all; 10 or more if not given."),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES",
            help="Vary this setting: model.dropout=0,0.1,0.3. Replaces the default space.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting of every trial."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Search settings by short trainings, judged by validation facts; test facts choose nothing."""
    clock = Clock()  # before anything heavy is imported: that takes time as well
    from knowformer.interfaces.progress import Counting
    from knowformer.tuning.tune import tune

    try:
        with Counting(err, "trials") as progress:
            result = tune(
                graph,
                folder,
                max_minutes=max_minutes,
                trials=trials,
                vary=vary or [],
                assignments=settings or [],
                on_trial=progress,
                clock=clock,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Stopped; the same command goes on with the search.") from None
    _show(result, as_json=as_json)


def _show(result: "TuningResult", *, as_json: bool) -> None:
    from knowformer.interfaces.schemas import TuningResponse
    from knowformer.tuning.result import BEST_FILE

    if as_json:
        print_json(TuningResponse.of(result, train_command(result)).content())
        return
    out.print(result)
    print_line(f"Best settings: {result.folder / BEST_FILE}, for 'knowformer train --config'.")
    print_line(f"To train with them: {train_command(result)}")


def train_command(result: "TuningResult") -> str:
    """Returns the command that trains with the best settings."""
    flags = [flag for setting in result.best_settings for flag in ("--set", setting)]
    return join(["knowformer", "train", result.graph, *flags])
