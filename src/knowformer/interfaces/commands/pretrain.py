"""``knowformer pretrain GRAPH...``: one model for any graph, trained on several."""

from pathlib import Path
from typing import Annotated

import typer

from knowformer.interfaces.commands.train import (
    OUTPUT,
    MaxEpochsOption,
    MaxMinutesOption,
    ResumeOption,
    SeedOption,
    SettingsOption,
    ThreadsOption,
    how_to_go_on,
    show_result,
)
from knowformer.interfaces.console import JsonOption, err
from knowformer.training.clock import Clock


def command(
    graphs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GRAPH...",
            help="Graphs to train on: files of facts, folders or catalogue names.",
        ),
    ] = None,
    run: Annotated[
        Path,
        typer.Option("--out", metavar="RUN", help="Run folder to write.", rich_help_panel=OUTPUT),
    ] = Path("runs/pretrained"),
    validate_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GRAPH",
            help="A graph to choose weights on, which is not trained on; may be repeated. Without "
            "one, validation facts of the graphs that are trained on choose.",
        ),
    ] = None,
    max_minutes: MaxMinutesOption = None,
    max_epochs: MaxEpochsOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    threads: ThreadsOption = None,
    resume: ResumeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train one model on several graphs, which then answers on any graph without training.

    It reads what a relation is from the graph, so entities and relations may all be new to it.

    Examples:
        knowformer pretrain fb15k-237 wn18rr codex-m --validate-on kg20c --max-minutes 60
        knowformer evaluate runs/pretrained --graph facts.tsv
        knowformer answer runs/pretrained --graph facts.tsv --head aspirin --relation treats
    """
    clock = Clock()  # before anything heavy is imported: that takes time as well
    if not graphs and not resume:
        raise typer.BadParameter("needed, unless --resume names a run", param_hint="GRAPH")
    from knowformer.interfaces.progress import TrainingDisplay
    from knowformer.pipeline import follow
    from knowformer.pretraining import pretrain, starting_settings
    from knowformer.system.interrupts import farewell
    from knowformer.training.settings_file import build_config

    if follow() is not None:
        return  # the process that leads says how it went
    named = {
        "training.max_minutes": max_minutes,
        "training.max_epochs": max_epochs,
        "seed": seed,
        "threads": threads,
    }
    assignments = [*(settings or []), *(f"{k}={v}" for k, v in named.items() if v is not None)]
    defaults = starting_settings(run, resume=resume)
    try:
        with farewell(lambda: how_to_go_on(run)), TrainingDisplay(err) as display:
            reasoner = pretrain(
                graphs or [],
                run,
                validate_on=validate_on or [],
                config=build_config(assignments=assignments, defaults=defaults),
                resume=resume,
                on_event=display,
                clock=clock,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(how_to_go_on(run)) from None
    show_result(run, reasoner, as_json=as_json, graph="YOUR_FACTS.tsv")
