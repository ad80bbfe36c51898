"""``knowformer train GRAPH``: train a model, go on with a run, or start from another's weights."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from knowformer.choices import PresetName, TrackerName
from knowformer.errors import ConfigError
from knowformer.interfaces.console import JsonOption, err, print_json, print_line, print_note
from knowformer.training.clock import Clock

if TYPE_CHECKING:
    from knowformer.data.dataset import Dataset, GraphSource
    from knowformer.reasoner import Reasoner
    from knowformer.training.checkpoint import Counters
    from knowformer.training.config import RunConfig

OUTPUT, LIMITS = "Output", "Limits; for a run that goes on, totals"
EARLIER, SETTINGS = "Going on from an earlier run", "Settings"
FEW_FACTS = 2000  # of a large test set, enough for a first look

MaxMinutesOption = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Minutes for the whole command, from its start to its last file; the learning "
        "rate and the number of validation questions are fitted to it.",
        rich_help_panel=LIMITS,
    ),
]
MaxEpochsOption = Annotated[
    float | None,
    typer.Option(
        metavar="N", help="Passes over the facts; may be a fraction.", rich_help_panel=LIMITS
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, such as model.hidden_dim=64; may be repeated.",
        rich_help_panel=SETTINGS,
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Random seed, for all that is drawn at random.",
        rich_help_panel=SETTINGS,
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="CPU threads; all cores if not given."),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with the run in the run folder, if there is one. A finished run is trained "
        "further if it is given higher limits.",
        rich_help_panel=EARLIER,
    ),
]


def command(
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH",
            help="A file of facts (head, relation, tail), a folder with train.txt, valid.txt and "
            "test.txt, or a catalogue name; with --resume or --with-live-facts, a run folder.",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="RUN",
            help="Run folder to write; runs/GRAPH if not given.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    max_minutes: MaxMinutesOption = None,
    max_epochs: MaxEpochsOption = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="TOML file of settings.", rich_help_panel=SETTINGS
        ),
    ] = None,
    settings: SettingsOption = None,
    preset: Annotated[
        PresetName | None,
        typer.Option(
            help="Start from the settings of the authors' commands for the data set, or of the "
            "paper's text, instead of those recommended for it.",
            rich_help_panel=SETTINGS,
        ),
    ] = None,
    view_size: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Entities of the graph that a query sees, at most; 0 is all. Chosen by the size "
            "of the graph if not given.",
            rich_help_panel=SETTINGS,
        ),
    ] = None,
    seed: SeedOption = None,
    threads: ThreadsOption = None,
    resume: ResumeOption = False,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Start from the weights of another run; relations are matched by name. 'shipped' "
            "is the model that ships with knowformer, which fits any graph.",
            rich_help_panel=EARLIER,
        ),
    ] = None,
    with_live_facts: Annotated[
        bool,
        typer.Option(
            "--with-live-facts",
            help="GRAPH is a run folder: train anew, with its settings, on its facts and on those "
            "that were added while it was served, without those that were removed.",
            rich_help_panel=EARLIER,
        ),
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the live facts are, if not in the run folder.",
            rich_help_panel=EARLIER,
        ),
    ] = None,
    track: Annotated[
        list[TrackerName] | None,
        typer.Option(
            metavar="TRACKER",
            help="Log the run there as well: tensorboard, mlflow or wandb; may be given several "
            "times.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a model on a graph, and leave a run folder that the other commands take.

    The best weights are chosen on validation facts alone; test facts have no say.

    Examples:
        knowformer train facts.tsv --out runs/mine --max-minutes 10
        knowformer train umls-pykeen --seed 1 --set model.hidden_dim=64
        knowformer train --resume runs/mine --max-minutes 20
        knowformer train runs/mine --with-live-facts --out runs/next
    """
    clock = Clock()  # before anything heavy is imported: that takes time as well
    if graph is None and (run is None or not resume):
        raise typer.BadParameter("needed, unless --resume names a run", param_hint="GRAPH")
    _check_live_facts(graph, run, store, with_live_facts=with_live_facts)
    from knowformer.interfaces.progress import TrainingDisplay
    from knowformer.pipeline import follow, starting_settings, train
    from knowformer.runs.folder import holds_run
    from knowformer.system.interrupts import farewell
    from knowformer.tracking import TRACKERS

    if follow() is not None:
        return  # the process that leads says how it went
    trackers = [TRACKERS[name]() for name in dict.fromkeys(track or [])]
    if resume and run is None and holds_run(Path(str(graph))):
        graph, run = None, Path(str(graph))
    folder = run or Path("runs") / Path(str(graph)).stem
    assignments = list(settings or [])
    named = {
        "training.max_minutes": max_minutes,
        "training.max_epochs": max_epochs,
        "model.view_size": view_size,
        "seed": seed,
        "threads": threads,
    }
    for key, value in named.items():
        assignments += [] if value is None else [f"{key}={value}"]
    goes_on = resume and holds_run(folder)
    facts: GraphSource | None = graph
    if with_live_facts:
        facts = _live_facts(Path(str(graph)), store)
    if goes_on or with_live_facts:
        defaults = _stored(folder if goes_on else Path(str(graph)))
    else:
        defaults = starting_settings(graph, start_from, recommended=preset is None)
    chosen = _compose(config, preset, graph, assignments, defaults)
    if not goes_on and not with_live_facts and preset is None:
        _tell_recommended(graph, starting_settings(graph), chosen)
    try:
        with farewell(lambda: how_to_go_on(folder)), TrainingDisplay(err) as display:
            reasoner = train(
                facts,
                folder,
                config=chosen,
                resume=resume,
                start_from=start_from,
                on_event=[display, *trackers],
                clock=clock,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(how_to_go_on(folder)) from None
    show_result(folder, reasoner, as_json=as_json)


def _check_live_facts(
    graph: str | None, run: Path | None, store: Path | None, *, with_live_facts: bool
) -> None:
    if store is not None and not with_live_facts:
        raise ConfigError("Expected --store together with --with-live-facts, got it alone.")
    if with_live_facts and (graph is None or run is None):
        raise ConfigError(
            "Expected a run folder, and --out for the run to come, with --with-live-facts, got one "
            "of them at most."
        )


def _compose(
    file: Path | None,
    preset: PresetName | None,
    graph: str | None,
    assignments: list[str],
    defaults: dict[str, Any],
) -> "RunConfig":
    from knowformer.data.loading import catalogue_name
    from knowformer.training.settings_file import build_config

    return build_config(
        file=file,
        preset=preset,
        dataset=None if graph is None else catalogue_name(graph),
        assignments=assignments,
        defaults=defaults,
    )


def _stored(folder: Path) -> dict[str, Any]:
    """Returns the settings that a run was started with: what is not named stays as it was."""
    from knowformer.runs.folder import load_config

    return load_config(folder).model_dump(mode="json")


def _live_facts(run: Path, store: Path | None) -> "Dataset":
    """Returns a run's facts as they were changed since, and says how many those are."""
    from knowformer.live.next_training import dataset_with_live_facts
    from knowformer.runs.folder import holds_run, load_run_dataset

    if not holds_run(run):
        raise ConfigError(f"Expected a run folder with --with-live-facts, got {run}.")
    before, after = load_run_dataset(run), dataset_with_live_facts(run, store=store)
    sizes = [len(dataset.test.known) for dataset in (before, after)]
    print_note(f"{sizes[1]:,} facts in all, where {run} has {sizes[0]:,}")
    return after


def _tell_recommended(graph: str | None, advised: dict[str, Any], chosen: "RunConfig") -> None:
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


def how_to_go_on(folder: Path) -> str:
    """Returns a sentence for someone who pressed Ctrl-C."""
    from knowformer.runs.folder import CHECKPOINT_FILE, holds_run
    from knowformer.training.checkpoint import read_counters

    if not holds_run(folder):
        return "Stopped before the run began; the same command starts it."
    where, checkpoint = "before the first checkpoint", folder / CHECKPOINT_FILE
    if checkpoint.exists():
        where = f"with all up to step {read_counters(checkpoint).step:,} kept"
    return f"Stopped {where}; go on with: knowformer train --resume {quote(str(folder))}"


def show_result(
    folder: Path, reasoner: "Reasoner", *, as_json: bool, graph: str | None = None
) -> None:
    """Shows what a training has come to, and what to type next.

    Args:
        folder: the run folder.
        reasoner: on it.
        as_json: whether to print JSON.
        graph: to evaluate on, if it is not the run's own.
    """
    from knowformer.interfaces.schemas import TrainingResponse
    from knowformer.plots.learning_curve import HOW_TO_GET_PLOTS, can_draw
    from knowformer.runs.folder import read_metrics

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
    _print_result(folder, metrics, reasoner)
    print_line(f"Run folder: {folder}")
    options = f" --graph {graph}" if graph is not None else ""
    if len(reasoner.dataset.test.facts) > 2 * FEW_FACTS:
        options += f" --facts {FEW_FACTS}"
    print_line(f"Next: knowformer evaluate {quote(str(folder))}{options}")
    if not can_draw():
        print_note(HOW_TO_GET_PLOTS)


def _print_result(folder: Path, metrics: dict[str, Any], reasoner: "Reasoner") -> None:
    """How good the kept weights are, beside the baselines on the same facts."""
    from knowformer.evaluation.baselines.comparison import BaselineReport, BaselineReports, unbeaten
    from knowformer.evaluation.baselines.ranking import BASELINES
    from knowformer.runs.folder import CHECKPOINT_FILE
    from knowformer.training.checkpoint import read_counters
    from knowformer.training.validation import validation_terms

    best, stored = metrics["best_validation"], metrics["validation_baselines"]
    reports: BaselineReports = {n: BaselineReport.model_validate(stored[n]) for n in BASELINES}
    beside = [f"{BASELINES[name]} {r.realistic['mrr']:.3f}" for name, r in reports.items()]
    print_line(
        f"Kept the weights of step {best['step']:,}. Validation MRR: model "
        f"{best['valid_mrr']:.3f}, {', '.join(beside)}."
    )
    if rivals := unbeaten(reports):
        advice = what_would_help(folder, read_counters(folder / CHECKPOINT_FILE), reasoner.config)
        print_line(f"The model is not clearly better than {rivals}. {advice}")
    num_facts = best.get("num_facts")
    if terms := validation_terms(reasoner.dataset, reasoner.config, num_facts=num_facts):
        print_line(
            "Test facts, which 'knowformer evaluate' ranks, will have another MRR: in validation "
            f"{terms}."
        )


def what_would_help(folder: Path, counters: "Counters", config: "RunConfig") -> str:
    """Returns what to do about a model that is no better than a baseline.

    Args:
        folder: of its run.
        counters: how far the run came.
        config: the run's settings.
    """
    from knowformer.training.config import MOST_EPOCHS

    name, minutes, epochs = quote(str(folder)), config.training.max_minutes, counters.epochs_done
    if minutes is None or epochs >= (config.training.max_epochs or MOST_EPOCHS):
        return (
            f"It has had {epochs:.2g} epochs, and more may not help: 'knowformer evaluate {name} "
            "--by-relation' shows which relations it knows, 'knowformer audit' what is odd about "
            "the facts."
        )
    seen = f"{epochs:.0%} of the facts once" if epochs < 1 else f"the facts {epochs:.2g} times"
    advice = (
        f"It has seen {seen if counters.step else 'no fact at all'}. Train it further: "
        f"knowformer train --resume {name} --max-minutes {4 * minutes:g}"
    )
    if config.model.relation_encoder == "table":
        advice += " (in a short run '--from shipped' starts ahead, from weights for any graph)"
    return f"{advice}."
