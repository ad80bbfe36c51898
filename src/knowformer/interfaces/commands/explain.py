"""``knowformer explain RUN``: why an answer was given, or how far explanations can be trusted."""

from pathlib import Path
from typing import Annotated

import typer

from knowformer.errors import ConfigError
from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
from knowformer.explanation.explainer import AsksFor
from knowformer.explanation.explanation import Explanation
from knowformer.explanation.find.evidence import NUM_PATHS, NUM_PROTOTYPES
from knowformer.explanation.show.picture import check_picture, draw_curves, draw_explanation
from knowformer.interfaces.console import (
    GraphOption,
    JsonOption,
    RunArgument,
    ThreadsOption,
    err,
    out,
    print_json,
    print_line,
    typed_command,
)
from knowformer.interfaces.progress import Counting
from knowformer.interfaces.render.explanation import render_explanation, render_faithfulness
from knowformer.reasoner import FactsFrom, Reasoner

ONE, MANY = "One answer: give all three names", "How far explanations can be trusted"


def command(
    run: RunArgument,
    head: Annotated[
        str | None, typer.Option(metavar="H", help="Head's name.", rich_help_panel=ONE)
    ] = None,
    relation: Annotated[
        str | None, typer.Option(metavar="R", help="Relation's name.", rich_help_panel=ONE)
    ] = None,
    tail: Annotated[
        str | None, typer.Option(metavar="T", help="Tail's name.", rich_help_panel=ONE)
    ] = None,
    asks_for: Annotated[
        AsksFor,
        typer.Option(help="Which of the two is the answer to explain.", rich_help_panel=ONE),
    ] = "tail",
    k: Annotated[int, typer.Option("-k", help="How many paths.", rich_help_panel=ONE)] = NUM_PATHS,
    prototypes: Annotated[
        int, typer.Option(help="How many prototypes.", rich_help_panel=ONE)
    ] = NUM_PROTOTYPES,
    by_head: Annotated[
        bool,
        typer.Option(
            "--by-head",
            help="Show attention in each layer and head as well.",
            rich_help_panel=ONE,
        ),
    ] = False,
    test_set: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Explain N test facts; report what they lose without their evidence.",
            rich_help_panel=MANY,
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: .svg, .png or .pdf.")
    ] = None,
    graph: GraphOption = None,
    evidence: Annotated[
        FactsFrom, typer.Option(help="Reason from all facts, or from training facts alone.")
    ] = "all",
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Readable names: id<TAB>name a line.")
    ] = None,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Explain an answer: the paths and prototypes behind it, and what it loses without them."""
    if picture is not None:
        check_picture(picture)
    _check_one_kind({"--head": head, "--relation": relation, "--tail": tail}, test_set)
    reasoner = Reasoner.from_pretrained(
        run,
        graph=graph if test_set is None else None,
        evidence=evidence,
        labels=labels,
        threads=threads,
    )
    result: Explanation | FaithfulnessReport
    if test_set is not None:
        with Counting(err, "explain") as progress:
            result = reasoner.measure_faithfulness(
                test_set, graph=graph, progress=progress, command=typed_command()
            )
    else:
        with err.status("explain"):
            result = reasoner.explain(
                head=head or "",
                relation=relation or "",
                tail=tail or "",
                asks_for=asks_for,
                k=k,
                num_prototypes=prototypes,
            )
    _show(result, picture, by_head=by_head, as_json=as_json)


def _check_one_kind(fact: dict[str, str | None], test_set: int | None) -> None:
    """A fact, or a test set."""
    missing = [name for name, value in fact.items() if value is None]
    if test_set is not None and len(missing) < len(fact):
        raise ConfigError("Expected a fact to explain or --test-set, got both. Leave one out.")
    if test_set is None and missing:
        raise ConfigError(
            "Expected --head, --relation and --tail of the fact to explain, got no "
            f"{' and no '.join(missing)}. Or report on a test set with --test-set N."
        )


def _show(
    result: Explanation | FaithfulnessReport, picture: Path | None, *, by_head: bool, as_json: bool
) -> None:
    if as_json:
        print_json(result.model_dump(mode="json"))
    elif isinstance(result, Explanation):
        out.print(render_explanation(result, by_head=by_head))
    else:
        out.print(render_faithfulness(result))
    if picture is None:
        return
    if isinstance(result, Explanation):
        draw_explanation(result, picture)
    else:
        draw_curves(result, picture)
    if not as_json:
        print_line(f"Picture: {picture}")
