"""``knowformer evaluate RUN``: rank a split's facts, and measure the probabilities."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from knowformer.choices import SplitName
from knowformer.interfaces.console import (
    GraphOption,
    JsonOption,
    RunOrGraphArgument,
    ThreadsOption,
    err,
    out,
    print_json,
    print_line,
    print_note,
    typed_command,
)

if TYPE_CHECKING:
    from knowformer.evaluation.report import EvaluationReport
    from knowformer.reasoner import Reasoner

SHOWN_RELATIONS = 30  # rows; JSON has all


def command(
    run: RunOrGraphArgument,
    split: Annotated[SplitName, typer.Option(help="Which facts to rank.")] = "test",
    facts: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Rank a sample of N facts, drawn by the run's seed; all if not given.",
            show_default=False,
        ),
    ] = None,
    by_relation: Annotated[
        bool,
        typer.Option(
            "--by-relation", help="Also show metrics for every relation, heads and tails apart."
        ),
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the rank of every fact: .parquet, .tsv or .csv."),
    ] = None,
    graph: GraphOption = None,
    relations: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Also ask for the relation of N facts; slow where there are many relations.",
            show_default=False,
        ),
    ] = 0,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Measure a model: rank every held-out fact against all entities, known facts left out.

    Two baselines are ranked in the same way: popularity, and rules of one or two steps that were
    counted on the training graph.

    Examples:
        knowformer evaluate runs/mine
        knowformer evaluate runs/mine --facts 2000
        knowformer evaluate runs/mine --by-relation --export ranks.csv
    """
    from knowformer.evaluation.rank_files import check_writable
    from knowformer.interfaces.progress import Counting
    from knowformer.plots.learning_curve import can_draw
    from knowformer.plots.reliability_diagram import draw_reliability
    from knowformer.reasoner import Reasoner
    from knowformer.runs.folder import update_metrics

    if export is not None:
        check_writable(export)  # before minutes of work
    reasoner = Reasoner.from_pretrained(run, threads=threads)
    with Counting(err, "ranking") as progress:
        report = reasoner.evaluate(
            split,
            graph=graph,
            relations=relations,
            num_facts=facts,
            progress=progress,
            command=typed_command(),
        )
    content = report.model_dump(mode="json")
    if by_relation:
        content["relations"] = report.by_relation().rows
    if as_json:
        print_json(content)
    else:
        _print_report(report, reasoner, by_relation=by_relation)
    if export is not None and report.facts is not None:
        report.facts.write(export)
        print_note(f"wrote {len(report.facts):,} ranks to {export}")
    if graph is None and not reasoner.is_shipped:
        # After printing: the numbers are not lost when they cannot be stored.
        update_metrics(run, {split: content})
        if report.calibration is not None and can_draw():
            title = f"{report.protocol.dataset}, {split}"
            draw_reliability(report.calibration, run / f"reliability_{split}.png", title=title)


def _print_report(report: "EvaluationReport", reasoner: "Reasoner", *, by_relation: bool) -> None:
    from knowformer.runs.folder import read_metrics
    from knowformer.training.validation import validation_terms

    out.print(report)
    if by_relation:
        out.print(report.by_relation().head(SHOWN_RELATIONS))
    best: dict[str, Any] = read_metrics(reasoner.folder).get("best_validation", {})
    terms = validation_terms(reasoner.dataset, reasoner.config, num_facts=best.get("num_facts"))
    if best and terms:
        mrr = f"{best['valid_mrr']:.3f}"
        print_line(
            f"Do not compare this MRR with that of validation in training, {mrr}: in validation "
            f"{terms}."
        )
    print_line(f"made by: {typed_command()}")
