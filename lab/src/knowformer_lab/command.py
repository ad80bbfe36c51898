"""The command line: list the experiments, run what is missing, write the report."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from knowformer.interfaces.console import (
    JsonOption,
    ThreadsOption,
    err,
    out,
    print_json,
    print_line,
    print_note,
)
from knowformer.interfaces.entry import run_app
from knowformer.interfaces.help import PlainCommand
from knowformer.interfaces.hints import as_typed

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from knowformer_lab.experiment import Experiment
    from knowformer_lab.results import Result, ResultStore
    from knowformer_lab.runner import Outcome, Runner, Task, Watcher

STATE_STYLES = {"done": "green", "partly": "yellow", "outdated": "magenta", "not yet run": "dim"}


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="A table (inductive), an experiment (inductive/wn18rr_v1) or 'all'; without a "
            "name all experiments are listed.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        list[int] | None,
        typer.Option("--seed", min=0, metavar="N", help="Run only this seed; may be repeated."),
    ] = None,
    runs: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where run folders are written.")
    ] = Path("runs/reproduce"),
    max_minutes: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="N", help="Stop after N minutes; the same command goes on later."
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option("--report", help="Write RESULTS.md and its pictures from stored results."),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--experiments",
            metavar="DIR",
            help="Folder of experiments and their results; ./experiments, ./lab/experiments or the "
            "installed ones if not given.",
            show_default=False,
        ),
    ] = None,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Run the paper's experiments that have no result yet, or list them all.

    Examples:
        knowformer reproduce
        knowformer reproduce inductive/wn18rr_v1
        knowformer reproduce all --max-minutes 120
    """
    from knowformer_lab.experiment import (
        INSTALLED_FOLDER,
        RESULTS_FOLDER,
        choose,
        find_folder,
        load_experiments,
    )
    from knowformer_lab.report.page import write_report
    from knowformer_lab.results import ResultStore
    from knowformer_lab.runner import Runner

    source = find_folder(folder)
    home = runs if source == INSTALLED_FOLDER else source  # nothing is written into the package
    experiments = load_experiments(source)
    store = ResultStore(home / RESULTS_FOLDER)
    outcomes: list[Outcome] = []
    if names:
        runner = Runner(store, runs, experiments, threads=threads)
        outcomes = _run(runner, choose(experiments, names), seeds, max_minutes, as_json)
    elif not report:
        _list(experiments, store, as_json)
    if report:
        written = write_report(experiments, store, home)
        if not as_json:
            print_line(f"Written: {written}")
        elif not names:
            print_json({"report": str(written)})
    failed = [outcome.error for outcome in outcomes if outcome.error is not None]
    if failed:
        raise typer.Exit(max(error.exit_code for error in failed))


def _list(experiments: "dict[str, Experiment]", store: "ResultStore", as_json: bool) -> None:
    rows = [_row(experiment, store) for experiment in experiments.values()]
    if as_json:
        print_json(rows)
        return
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        title="Experiments",
        title_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("experiment", no_wrap=True)
    for column in ("runs", "seeds", "budget"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for _, group in _groups(rows).items():
        table.add_row(*_group_cells(group))
    out.print(table)
    print_line("Run one with 'knowformer reproduce NAME', a table, or all; --report writes it up.")


def _row(experiment: "Experiment", store: "ResultStore") -> dict[str, Any]:
    done = [result.seed for result in store.all_current(experiment)]
    return {
        "experiment": experiment.name,
        "kind": experiment.kind,
        "dataset": experiment.dataset,
        "about": experiment.about,
        "seeds": list(experiment.seeds),
        "epochs": experiment.epochs,
        "minutes": experiment.minutes,
        "budget": experiment.budget,
        "state": store.state(experiment),
        "seeds_done": done,
    }


def _groups(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Groups the runs of a file, one line each: a grid's 27 runs would drown the rest."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault("/".join(row["experiment"].split("/")[:2]), []).append(row)
    return groups


def _group_cells(group: list[dict[str, Any]]) -> list[str]:
    from rich.markup import escape

    first = group[0]
    wanted = sum(len(row["seeds"]) for row in group)
    done = sum(len(set(row["seeds"]) & set(row["seeds_done"])) for row in group)
    states = {row["state"] for row in group}
    state = states.pop() if len(states) == 1 else "partly"
    shown = f"{state} ({done} of {wanted})" if state == "partly" else state
    return [
        escape("/".join(first["experiment"].split("/")[:2])),
        str(len(group)),
        str(len(first["seeds"])),
        first["budget"] or "-",
        f"[{STATE_STYLES[state]}]{shown}[/]",
    ]


def _run(
    runner: "Runner",
    chosen: "list[Experiment]",
    seeds: list[int] | None,
    max_minutes: float | None,
    as_json: bool,
) -> "list[Outcome]":
    tasks = runner.missing(chosen, seeds)
    if not tasks and not as_json:
        print_line("Nothing to run: every result is there.")
    try:
        outcomes = runner.run(tasks, watch=_watch, max_minutes=max_minutes)
    except KeyboardInterrupt:
        err.print("stopped; the same command goes on from the last checkpoint")
        raise typer.Exit(130) from None
    if as_json:
        print_json([_outcome(runner.store, outcome) for outcome in outcomes])
        return outcomes
    for outcome in outcomes:
        _print_outcome(outcome)
    left = sum(outcome.state == "out of time" for outcome in outcomes)
    if left:
        print_note(f"out of time with {left} of {len(tasks)} left; the same command goes on")
    return outcomes


@contextmanager
def _watch(task: "Task", number: int, total: int) -> "Generator[Watcher]":
    from rich.markup import escape

    from knowformer.interfaces.progress import TrainingDisplay, counting_progress
    from knowformer_lab.runner import Watcher

    experiment = task.experiment
    budget = f", at most {experiment.budget}" if experiment.budget else ""
    err.print(
        f"[bold]{escape(experiment.name)}[/], seed {task.seed} ({number} of {total}){budget}",
        highlight=False,
        soft_wrap=True,
    )
    with ExitStack() as shown:
        display = shown.enter_context(TrainingDisplay(err))
        bars: list[tuple[Progress, TaskID]] = []

        def show(done: int, of: int) -> None:
            if not bars:
                shown.close()  # a terminal has one live line at a time
                progress = shown.enter_context(counting_progress(err, "measure"))
                bars.append((progress, progress.add_task("measure", total=of)))
            for progress, bar in bars:
                progress.update(bar, completed=done, total=of)

        yield Watcher(on_event=display, on_progress=show)


def _outcome(store: "ResultStore", outcome: "Outcome") -> dict[str, Any]:
    task = outcome.task
    done = outcome.result is not None
    return {
        "experiment": task.experiment.name,
        "seed": task.seed,
        "state": outcome.state,
        "result": str(store.path(task.experiment, task.seed)) if done else None,
        "error": str(outcome.error) if outcome.error else None,
    }


def _print_outcome(outcome: "Outcome") -> None:
    name = f"{outcome.task.experiment.name}, seed {outcome.task.seed}"
    if outcome.result is not None:
        print_line(f"{name}: {headline(outcome.result)}")
    elif outcome.error is not None:
        said = as_typed(f"error: {name}: {outcome.error}")
        err.print(said, style="red", markup=False, soft_wrap=True)
    elif outcome.state == "busy":
        print_note(f"{name}: another process is at this training")


def headline(result: "Result") -> str:
    """Returns the one figure that a person wants to see first."""
    if result.evaluation is not None and result.evaluation.link_prediction:
        return f"test AUROC {result.evaluation.link_prediction['auroc']:.3f}"
    if result.kind == "selection" and result.study:
        return f"test MRR {result.study['chosen_mrr']:.3f}, best epoch {result.study['leak']:+.3f}"
    if result.evaluation is not None:
        return f"test MRR {result.evaluation.mrr:.3f}"
    if result.kind == "bound" and result.study:
        return f"{result.study['pairs_above_bound']} of {result.study['num_pairs']:,} above bound"
    if result.kind == "attention" and result.study:
        answers = sum(len(question["answers"]) for question in result.study["questions"])
        return f"{answers} test answers followed"
    if result.training is not None:
        return f"validation MRR {result.training.valid_mrr:.3f}"
    return "done"


def main() -> None:
    """Runs ``knowformer-lab``."""
    app = typer.Typer(
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(cls=PlainCommand)(reproduce)
    run_app(app)
