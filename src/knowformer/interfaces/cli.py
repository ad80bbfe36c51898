"""The ``knowformer`` command."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from knowformer import __version__
from knowformer.data import catalog
from knowformer.data.dataset import catalogue_name
from knowformer.interfaces.commands import answer, audit, calibrate, explain, import_data
from knowformer.interfaces.console import (
    GraphOption,
    JsonOption,
    RunArgument,
    ThreadsOption,
    err,
    out,
    print_json,
    print_line,
    print_note,
    typed_command,
)
from knowformer.interfaces.entry import run_app
from knowformer.interfaces.plugins import PluginGroup
from knowformer.interfaces.progress import TrainingDisplay, counting_progress
from knowformer.interfaces.render import datasets_tables
from knowformer.interfaces.schemas import dataset_response
from knowformer.model.config import PresetName
from knowformer.pipeline import train
from knowformer.plots.learning_curve import HOW_TO_GET_PLOTS, can_draw
from knowformer.plots.reliability_diagram import draw_reliability
from knowformer.reasoner import Reasoner
from knowformer.runs.folder import read_metrics, update_metrics
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import build_config, recommended_settings

app = typer.Typer(
    cls=PluginGroup,
    help="Reason over knowledge graphs: train a KnowFormer, evaluate it, ask it questions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
datasets_app = typer.Typer(
    help="List the catalogue of data sets, or fetch one.", invoke_without_command=True
)
app.add_typer(datasets_app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"knowformer {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Reason over knowledge graphs: train a KnowFormer, evaluate it, ask it questions."""
    del version  # handled by its callback


@datasets_app.callback()
def list_datasets(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the catalogue of data sets, or fetch one."""
    if context.invoked_subcommand is not None:
        return
    rows = [dataset_response(entry) for entry in catalog.entries().values()]
    if as_json:
        print_json(rows)
    else:
        out.print(datasets_tables(rows))


@datasets_app.command("get")
def get_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of the catalogue.")],
    as_json: JsonOption = False,
) -> None:
    """Find a data set here or download it, and verify its checksums."""
    entry = catalog.find(name)
    with counting_progress(err, "download") as progress:
        tasks: dict[str, Any] = {}

        def show(path: str, done: int, total: int | None) -> None:
            if path not in tasks:
                tasks[path] = progress.add_task(path, total=total)
            progress.update(tasks[path], completed=done, total=total)

        folder = catalog.fetch(entry, progress=show)
    if as_json:
        print_json(dataset_response(entry))
    else:
        print_line(f"{name}: verified in {folder}")


@app.command("train")
def train_command(
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
    for key, value in (("training.max_minutes", max_minutes), ("seed", seed), ("threads", threads)):
        assignments += [] if value is None else [f"{key}={value}"]
    chosen: RunConfig | None = None
    if config or preset or assignments or not resume:
        advised = recommended_settings(catalogue_name(graph) if graph else None)
        chosen = build_config(file=config, preset=preset, assignments=assignments, defaults=advised)
        _tell_recommended(graph, advised, chosen)
    with TrainingDisplay(err) as display:
        reasoner = train(graph, folder, config=chosen, resume=resume, on_event=display)
    best = read_metrics(folder)["best_validation"]
    if as_json:
        print_json({"run": str(folder), "dataset": reasoner.dataset.name, "best_validation": best})
        return
    print_line(
        f"Kept the weights of step {best['step']}: validation MRR {best['valid_mrr']:.3f} "
        "(filtered by train and valid facts)."
    )
    print_line(f"Run folder: {folder}")
    if not can_draw():
        print_note(HOW_TO_GET_PLOTS)


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


@app.command("evaluate")
def evaluate_command(
    run: RunArgument,
    split: Annotated[
        Literal["train", "valid", "test"], typer.Option(help="Facts to rank.")
    ] = "test",
    graph: GraphOption = None,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Rank every fact of a split against all entities, known facts filtered out."""
    reasoner = Reasoner.from_pretrained(run, threads=threads)
    with counting_progress(err, "rank") as progress:
        task = progress.add_task("rank", total=None)
        report = reasoner.evaluate(
            split,
            graph=graph,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
            command=typed_command(),
        )
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


app.command("answer")(answer.command)
app.command("explain")(explain.command)
app.command("calibrate")(calibrate.command)
app.command("import")(import_data.command)
app.command("audit")(audit.command)


def main() -> None:
    """Runs ``knowformer``."""
    run_app(app)


if __name__ == "__main__":
    main()
