"""``knowformer explain RUN``: why an answer was given, or how far explanations can be trusted."""

from pathlib import Path
from typing import Annotated

import typer

from knowformer.errors import ConfigError
from knowformer.explanation.curves import FaithfulnessReport
from knowformer.explanation.evidence import NUM_PATHS, NUM_PROTOTYPES
from knowformer.explanation.explainer import AsksFor
from knowformer.explanation.explanation import Explanation
from knowformer.explanation.picture import check_picture, draw_curves, draw_explanation
from knowformer.interfaces.console import (
    GraphOption,
    JsonOption,
    RunArgument,
    ThreadsOption,
    err,
    out,
    print_json,
    print_line,
)
from knowformer.interfaces.progress import Counting
from knowformer.interfaces.render_explanation import render_explanation, render_report
from knowformer.reasoner import Evidence, Reasoner


def command(
    run: RunArgument,
    head: Annotated[str | None, typer.Option(metavar="H", help="Head's name.")] = None,
    relation: Annotated[str | None, typer.Option(metavar="R", help="Relation's name.")] = None,
    tail: Annotated[str | None, typer.Option(metavar="T", help="Tail's name.")] = None,
    asks_for: Annotated[
        AsksFor, typer.Option(help="Which of the two is the answer to explain.")
    ] = "tail",
    k: Annotated[int, typer.Option("-k", help="How many paths.")] = NUM_PATHS,
    prototypes: Annotated[int, typer.Option(help="How many prototypes.")] = NUM_PROTOTYPES,
    by_head: Annotated[
        bool, typer.Option("--by-head", help="Show attention in each layer and head as well.")
    ] = False,
    test_set: Annotated[
        int | None,
        typer.Option(metavar="N", help="Explain N test facts; report how faithful that is."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: .svg, .png or .pdf.")
    ] = None,
    graph: GraphOption = None,
    evidence: Annotated[
        Evidence, typer.Option(help="Reason from all facts, or from training facts alone.")
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
    asked = {"--head": head, "--relation": relation, "--tail": tail}
    if test_set is not None and any(asked.values()):
        raise ConfigError("Expected a fact to explain or --test-set, got both. Leave one out.")
    missing = [name for name, value in asked.items() if value is None]
    if test_set is None and missing:
        raise ConfigError(
            f"Expected --head, --relation and --tail of the fact to explain, got no "
            f"{' and no '.join(missing)}. Or report on a test set with --test-set N."
        )
    found: Explanation | FaithfulnessReport
    if test_set is not None:
        reasoner = Reasoner.from_pretrained(run, threads=threads)
        with Counting(err, "explain") as progress:
            found = reasoner.measure_faithfulness(test_set, graph=graph, progress=progress)
        rendered = render_report(found)
    else:
        assert head is not None
        assert relation is not None
        assert tail is not None
        reasoner = Reasoner.from_pretrained(
            run, graph=graph, evidence=evidence, labels=labels, threads=threads
        )
        with err.status("explain"):
            found = reasoner.explain(
                head=head,
                relation=relation,
                tail=tail,
                asks_for=asks_for,
                k=k,
                num_prototypes=prototypes,
            )
        rendered = render_explanation(found, by_head=by_head)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        out.print(rendered)
    if picture is not None:
        _draw(found, picture)
        if not as_json:
            print_line(f"Picture: {picture}")


def _draw(found: Explanation | FaithfulnessReport, picture: Path) -> None:
    if isinstance(found, Explanation):
        draw_explanation(found, picture)
    else:
        draw_curves(found, picture)
