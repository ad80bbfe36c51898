"""``knowformer answer RUN``: one question, a file of them, or a relation's missing facts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from knowformer.choices import FactsFrom, Sweep
from knowformer.errors import ConfigError
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

if TYPE_CHECKING:
    from knowformer.answering.batch_job import BatchSummary

ONE, MANY, MISSING = "One question", "A file of questions", "The missing facts of a relation"


def command(
    run: RunArgument,
    head: Annotated[
        str | None, typer.Option(metavar="H", help="Head's name.", rich_help_panel=ONE)
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Relation's name. To ask for it takes a pass of the model for every relation: "
            "with 237 of them 237 times as long as to ask for a head or a tail.",
            rich_help_panel=ONE,
        ),
    ] = None,
    tail: Annotated[
        str | None, typer.Option(metavar="T", help="Tail's name.", rich_help_panel=ONE)
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Questions, one a row: head, relation, tail, with ? for what is asked. .tsv, "
            ".jsonl or .parquet.",
            rich_help_panel=MANY,
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Their answers: .tsv, .jsonl or .parquet. After a crash the same command goes on. "
            "Bad rows are listed in FILE.rejected.",
            rich_help_panel=MANY,
        ),
    ] = None,
    all_missing: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Relation's name: rank its most probable new facts.",
            rich_help_panel=MISSING,
        ),
    ] = None,
    sweep: Annotated[
        Sweep,
        typer.Option(help="Ask its heads for tails, or tails for heads.", rich_help_panel=MISSING),
    ] = "heads",
    every_entity: Annotated[
        bool,
        typer.Option(
            "--every-entity",
            help="Ask every entity, not only those that have the relation.",
            rich_help_panel=MISSING,
        ),
    ] = False,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many answers.")] = 10,
    graph: GraphOption = None,
    new_only: Annotated[bool, typer.Option("--new-only", help="Leave out known facts.")] = False,
    evidence: Annotated[
        FactsFrom, typer.Option(help="Reason from all facts, or from training facts alone.")
    ] = "all",
    samples: Annotated[
        int, typer.Option(metavar="N", help="Draws of the noise; more than 1 shows the spread.")
    ] = 1,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Readable names: id<TAB>name a line.")
    ] = None,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Answer a question: give two of --head, --relation and --tail, and get the third."""
    asked = {"--head": head, "--relation": relation, "--tail": tail}
    _check_one_kind(asked, queries, target, all_missing)
    if all_missing is not None and samples != 1:
        raise ConfigError("Expected no --samples with --all-missing, which asks with one draw.")
    from knowformer.answering.responses import AnswersResponse, MissingFactsResponse
    from knowformer.answering.results import MissingFacts
    from knowformer.interfaces.progress import Counting
    from knowformer.reasoner import Reasoner

    reasoner = Reasoner.from_pretrained(
        run, graph=graph, evidence=evidence, labels=labels, threads=threads
    )
    if queries is not None and target is not None:
        try:
            with Counting(err, "answering") as progress:
                summary = reasoner.answer_file(
                    queries, target, k=k, new_only=new_only, samples=samples, progress=progress
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"Stopped; go on with: {typed_command()}") from None
        _print_summary(summary, as_json=as_json)
        return
    with Counting(err, "asking") as progress:
        if all_missing is not None:
            result = reasoner.missing_facts(
                all_missing, k=k, sweep=sweep, every_entity=every_entity, progress=progress
            )
        else:
            result = reasoner.answer(
                head=head,
                relation=relation,
                tail=tail,
                k=k,
                new_only=new_only,
                samples=samples,
                progress=progress,
            )
    if not as_json:
        out.print(result)
    elif isinstance(result, MissingFacts):
        print_json(MissingFactsResponse.of(result).content())
    else:
        print_json(AnswersResponse.of(result).content())


def _print_summary(summary: "BatchSummary", *, as_json: bool) -> None:
    """What became of a file of questions; rejected ones are the input's fault."""
    if as_json:
        print_json(summary.model_dump())
    else:
        line = f"Answered {summary.answered:,} of {summary.questions:,} questions: {summary.out}"
        print_line(f"{line} ({summary.resumed:,} of them before)" if summary.resumed else line)
        if summary.rejected:
            listed = summary.rejected_file
            print_line(f"Rejected {summary.rejected:,}, with line and reason: {listed}")
    if summary.rejected:
        raise typer.Exit(2)


def _check_one_kind(
    question: dict[str, str | None],
    queries: Path | None,
    target: Path | None,
    all_missing: str | None,
) -> None:
    """One question, a file of them, or the missing facts of a relation."""
    if (queries is None) != (target is None):
        missing, given = ("--out", "--queries") if target is None else ("--queries", "--out")
        raise ConfigError(f"Expected {missing} with {given}, got none. Give both, or neither.")
    parts = [name for name, value in question.items() if value is not None]
    kinds = {", ".join(parts): parts, "--queries": queries, "--all-missing": all_missing}
    given = [name for name, value in kinds.items() if value]
    if len(given) > 1:
        raise ConfigError(f"Expected one kind of question, got {' and '.join(given)}.")
    if len(given) == 0 or len(parts) == 1:
        raise ConfigError(
            "Expected a question: two of --head, --relation and --tail, or --queries with --out, "
            f"or --all-missing, got {'nothing to ask' if not parts else f'{parts[0]} alone'}."
        )
    if len(parts) == len(question):
        raise ConfigError(
            "Expected two of --head, --relation and --tail, got all three, which leaves nothing "
            "to ask. Leave one out, or see why the fact holds with 'knowformer explain'."
        )
