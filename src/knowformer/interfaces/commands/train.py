"""``knowformer train GRAPH``: train a model, or go on with a run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from knowformer.data.dataset import catalogue_name
from knowformer.evaluation.baselines.comparison import BaselineReport, BaselineReports, unbeaten
from knowformer.evaluation.baselines.ranking import BASELINES
from knowformer.interfaces.console import JsonOption, err, print_json, print_line, print_note
from knowformer.interfaces.progress import TrainingDisplay
from knowformer.interfaces.schemas import TrainingResponse
from knowformer.model.config import PresetName
from knowformer.pipeline import train
from knowformer.plots.learning_curve import HOW_TO_GET_PLOTS, can_draw
from knowformer.reasoner import Reasoner
from knowformer.runs.folder import read_metrics
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import build_config, recommended_settings
from knowformer.training.validation import validation_terms


def command(
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH",
            help="A catalogue name, a folder with train/valid/test.txt, or a triples file.",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--out", metavar="RUN", help="Run folder; runs/GRAPH if not given."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Settings as TOML.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting: model.hidden_dim=64."),
    ] = None,
    preset: Annotated[
        PresetName | None, typer.Option(help="Start from the released code or the paper's text.")
    ] = None,
    max_minutes: Annotated[
        float | None, typer.Option(help="Time budget; the schedule is fitted to it.")
    ] = None,
    view_size: Annotated[
        int | None,
        typer.Option(
            min=0, help="Entities that a query sees, at most; 0: the whole graph.", metavar="K"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Root of everything random.")] = None,
    threads: Annotated[int | None, typer.Option(min=0, help="CPU threads; 0: all cores.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in RUN, if any.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model on a graph; the best weights are chosen on validation facts alone."""
    if graph is None and (run is None or not resume):
        raise typer.BadParameter("needed, unless --resume and --out name a run", param_hint="GRAPH")
    folder = run or Path("runs") / Path(str(graph)).stem
    assignments = list(settings or [])
    named = {
        "training.max_minutes": max_minutes,
        "model.view_size": view_size,
        "seed": seed,
        "threads": threads,
    }
    for key, value in named.items():
        assignments += [] if value is None else [f"{key}={value}"]
    chosen: RunConfig | None = None
    if config or preset or assignments or not resume:
        advised = recommended_settings(catalogue_name(graph) if graph else None)
        chosen = build_config(file=config, preset=preset, assignments=assignments, defaults=advised)
        _tell_recommended(graph, advised, chosen)
    with TrainingDisplay(err) as display:
        reasoner = train(graph, folder, config=chosen, resume=resume, on_event=display)
    metrics = read_metrics(folder)
    if as_json:
        trained = TrainingResponse(
            run=str(folder),
            dataset=reasoner.dataset.name,
            best_validation=metrics["best_validation"],
            validation_baselines=metrics["validation_baselines"],
        )
        print_json(trained.content())
        return
    _print_result(metrics, reasoner)
    print_line(f"Run folder: {folder}")
    if not can_draw():
        print_note(HOW_TO_GET_PLOTS)


def _print_result(metrics: dict[str, Any], reasoner: Reasoner) -> None:
    """How good the kept weights are, beside the baselines on the same facts."""
    best, stored = metrics["best_validation"], metrics["validation_baselines"]
    reports: BaselineReports = {n: BaselineReport.model_validate(stored[n]) for n in BASELINES}
    beside = [f"{BASELINES[name]} {r.realistic['mrr']:.3f}" for name, r in reports.items()]
    print_line(
        f"Kept the weights of step {best['step']}. Validation MRR: model {best['valid_mrr']:.3f}, "
        f"{', '.join(beside)}."
    )
    if rivals := unbeaten(reports):
        print_line(
            f"The model is not clearly better than {rivals}. Train it longer, such as for twice "
            "the time (--max-minutes)."
        )
    if terms := validation_terms(reasoner.dataset, reasoner.config):
        print_line(f"Not the figure that 'knowformer evaluate' gives: {terms}.")


def _tell_recommended(graph: str | None, advised: dict[str, Any], chosen: RunConfig) -> None:
    """Says which settings were taken from the data set's recommendation, if any."""
    final = chosen.model_dump()
    used = [
        f"{table}.{key} = {value}"
        for table, settings in advised.items()
        for key, value in settings.items()
        if final[table][key] == value
    ]
    if used:
        print_note(f"settings recommended for {graph}: {', '.join(used)}")
