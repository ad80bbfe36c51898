"""``knowformer explain RUN``: why an answer was given, or how far explanations can be trusted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from knowformer.choices import NUM_PATHS, NUM_PROTOTYPES, AsksFor, FactsFrom
from knowformer.errors import ConfigError
from knowformer.interfaces.console import (
    GraphOption,
    JsonOption,
    RunOrGraphArgument,
    ThreadsOption,
    err,
    out,
    print_json,
    print_line,
    typed_command,
)

if TYPE_CHECKING:
    from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
    from knowformer.explanation.explanation import Explanation

ONE, MANY = "One answer: give all three names, or --example", "How far explanations can be trusted"


def command(
    run: RunOrGraphArgument,
    head: Annotated[
        str | None, typer.Option(metavar="H", help="Name of the head.", rich_help_panel=ONE)
    ] = None,
    relation: Annotated[
        str | None, typer.Option(metavar="R", help="Name of the relation.", rich_help_panel=ONE)
    ] = None,
    tail: Annotated[
        str | None, typer.Option(metavar="T", help="Name of the tail.", rich_help_panel=ONE)
    ] = None,
    asks_for: Annotated[
        AsksFor,
        typer.Option(
            help="Which of the two is the answer to explain.",
            rich_help_panel=ONE,
        ),
    ] = "tail",
    k: Annotated[
        int, typer.Option("-k", metavar="N", help="How many paths to show.", rich_help_panel=ONE)
    ] = NUM_PATHS,
    prototypes: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="How many prototypes to show: entities that the answer gains by attending to.",
            rich_help_panel=ONE,
        ),
    ] = NUM_PROTOTYPES,
    by_head: Annotated[
        bool,
        typer.Option(
            "--by-head",
            help="Also show attention in each layer and attention head.",
            rich_help_panel=ONE,
        ),
    ] = False,
    example: Annotated[
        bool,
        typer.Option(
            "--example",
            help="Choose a test fact that the model finds from training facts alone.",
            rich_help_panel=ONE,
        ),
    ] = False,
    test_set: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Explain N test facts, and report what their scores lose without the evidence.",
            rich_help_panel=MANY,
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result: .svg, .png or .pdf.")
    ] = None,
    graph: GraphOption = None,
    evidence: Annotated[
        FactsFrom,
        typer.Option(help="Reason from all facts, or from training facts alone."),
    ] = "all",
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Readable names: a line is an id, a tab and a name."),
    ] = None,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Explain an answer: the facts and entities behind it, and what it loses without them.

    Examples:
        knowformer explain runs/mine --head aspirin --relation treats --tail headache
        knowformer explain runs/mine --test-set 200
    """
    from knowformer.explanation.show.picture import check_picture
    from knowformer.interfaces.progress import Counting
    from knowformer.reasoner import Reasoner

    if picture is not None:
        check_picture(picture)
    names = {"--head": head, "--relation": relation, "--tail": tail}
    _check_one_kind(names, example=example, test_set=test_set)
    reasoner = Reasoner.from_pretrained(
        run,
        graph=graph if test_set is None else None,
        evidence="train" if example else evidence,
        labels=labels,
        threads=threads,
    )
    if example:
        with Counting(err, "explaining") as progress:
            chosen = reasoner.example(progress=progress)
        if not as_json:
            print_line(f"{chosen.rule}:\n")
        _show_explanation(chosen.explanation, picture, by_head=by_head, as_json=as_json)
    elif test_set is not None:
        with Counting(err, "explaining") as progress:
            report = reasoner.measure_faithfulness(
                test_set, graph=graph, progress=progress, command=typed_command()
            )
        _show_report(report, picture, as_json=as_json)
    else:
        with err.status("explaining"):
            explanation = reasoner.explain(
                head=head or "",
                relation=relation or "",
                tail=tail or "",
                asks_for=asks_for,
                k=k,
                num_prototypes=prototypes,
            )
        _show_explanation(explanation, picture, by_head=by_head, as_json=as_json)


def _check_one_kind(fact: dict[str, str | None], *, example: bool, test_set: int | None) -> None:
    """A fact, an example, or a test set."""
    missing = [name for name, value in fact.items() if value is None]
    if example + (test_set is not None) + (len(missing) < len(fact)) > 1:
        raise ConfigError(
            "Expected a fact to explain, --example or --test-set, got more than one of them. "
            "Leave the others out."
        )
    if missing and not example and test_set is None:
        raise ConfigError(
            "Expected --head, --relation and --tail of the fact to explain, got no "
            f"{' and no '.join(missing)}. Or let one be chosen with --example, or report on a test "
            "set with --test-set N."
        )


def _show_explanation(
    explanation: "Explanation", picture: Path | None, *, by_head: bool, as_json: bool
) -> None:
    from knowformer.explanation.show.picture import draw_explanation
    from knowformer.interfaces.render.explanation import render_explanation

    if as_json:
        print_json(explanation.model_dump(mode="json"))
    else:
        out.print(render_explanation(explanation, by_head=by_head))
    if picture is not None:
        draw_explanation(explanation, picture)
        _tell_picture(picture, as_json=as_json)


def _show_report(report: "FaithfulnessReport", picture: Path | None, *, as_json: bool) -> None:
    from knowformer.explanation.show.picture import draw_curves
    from knowformer.interfaces.render.explanation import render_faithfulness

    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        out.print(render_faithfulness(report))
    if picture is not None:
        draw_curves(report, picture)
        _tell_picture(picture, as_json=as_json)


def _tell_picture(picture: Path, *, as_json: bool) -> None:
    if not as_json:
        print_line(f"Picture: {picture}")
