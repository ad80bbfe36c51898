"""``knowformer answer RUN``: one question, a file of them, or a relation's missing facts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from knowformer.choices import AnswerEngine, AnswerFormat, FactsFrom, Sweep
from knowformer.errors import ConfigError, require_package
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
    from knowformer.answering.batch_job import BatchSummary
    from knowformer.answering.candidates import HowToAnswer
    from knowformer.answering.results import Answers, MissingFacts

ONE, MANY, MISSING = "One question", "A file of questions", "The missing facts of a relation"
SHARDS = "A folder of answers to millions of questions"
WHO = "Which entities may be an answer"


def command(
    run: RunOrGraphArgument,
    head: Annotated[
        str | None, typer.Option(metavar="H", help="Name of the head.", rich_help_panel=ONE)
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Name of the relation. Asking for it is slow: two passes of the model for every "
            "relation, where a head or a tail takes one in all.",
            rich_help_panel=ONE,
        ),
    ] = None,
    tail: Annotated[
        str | None, typer.Option(metavar="T", help="Name of the tail.", rich_help_panel=ONE)
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Questions, one a row: head, relation, tail, with ? for what is asked; .tsv, "
            ".csv, .jsonl or .parquet.",
            rich_help_panel=MANY,
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the answers, or the missing facts, to this file: .tsv, .csv, .jsonl or "
            ".parquet. After a crash the same command goes on. Rows that cannot be asked are "
            "listed in FILE.rejected. A name without an ending is a folder, which takes the "
            "answers in shards: for millions of questions.",
            rich_help_panel=MANY,
        ),
    ] = None,
    engine: Annotated[
        AnswerEngine,
        typer.Option(
            help="Answer in this process, or on Ray, on this machine or many; into a folder.",
            rich_help_panel=SHARDS,
        ),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of a Ray cluster, such as HOST:6379; without it one is started here.",
            rich_help_panel=SHARDS,
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Processes of Ray that answer, each with --threads threads, 1 if not given; as "
            "many as there are cores if not given.",
            show_default=False,
            rich_help_panel=SHARDS,
        ),
    ] = 0,
    shard_format: Annotated[
        AnswerFormat,
        typer.Option("--format", help="What shards are written in.", rich_help_panel=SHARDS),
    ] = "jsonl",
    shard_rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Lines of the questions that a shard has; chosen if not given.",
            rich_help_panel=SHARDS,
        ),
    ] = None,
    all_missing: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Rank the most probable new facts of this relation.",
            rich_help_panel=MISSING,
        ),
    ] = None,
    sweep: Annotated[
        Sweep,
        typer.Option(
            help="Whom to ask: its heads for new tails, or its tails for new heads.",
            rich_help_panel=MISSING,
        ),
    ] = "heads",
    every_entity: Annotated[
        bool,
        typer.Option(
            "--every-entity",
            help="Ask every entity, not only those that have a fact of the relation.",
            rich_help_panel=MISSING,
        ),
    ] = False,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many answers to show.")] = 10,
    candidates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rank only the entities in this file, one name a line.",
            rich_help_panel=WHO,
        ),
    ] = None,
    of_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Rank only entities of a type: 'R:head' or 'R:tail' for heads or tails of "
            "relation R, 'R=T' for entities that have the fact (entity, R, T).",
            rich_help_panel=WHO,
        ),
    ] = None,
    graph: GraphOption = None,
    new_only: Annotated[
        bool, typer.Option("--new-only", help="Leave out facts that are known already.")
    ] = False,
    evidence: Annotated[
        FactsFrom,
        typer.Option(help="Reason from all facts, or from training facts alone."),
    ] = "all",
    samples: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Ask N times, each time with other random noise in the model's input, and show "
            "how much the answers vary.",
        ),
    ] = 1,
    typical: Annotated[
        bool | None,
        typer.Option(
            "--typical/--no-typical",
            help="Show how an answer ranks for other heads (or tails) of the relation: where that "
            "is as good, the answer is merely popular. On for one question, off for a file.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Readable names: a line is an id, a tab and a name."),
    ] = None,
    threads: ThreadsOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Answer a question: give two of --head, --relation and --tail, and get the third.

    Examples:
        knowformer answer runs/mine --head aspirin --relation treats --new-only
        knowformer answer runs/mine --queries questions.tsv --out answers.csv
        knowformer answer runs/mine --queries questions.tsv --out answers --engine ray
        knowformer answer runs/mine --all-missing treats -k 50
    """
    asked = {"--head": head, "--relation": relation, "--tail": tail}
    _check_one_kind(asked, queries, target, all_missing)
    _check_engine(engine, address, workers, queries, target)
    if all_missing is not None and samples != 1:
        raise ConfigError(
            "Expected no --samples with --all-missing, which asks every question once."
        )
    from knowformer.answering.ray_engine import RayEngine
    from knowformer.interfaces.progress import Counting
    from knowformer.reasoner import Reasoner

    reasoner = Reasoner.from_pretrained(
        run, graph=graph, evidence=evidence, labels=labels, threads=threads
    )
    how: HowToAnswer = {
        "k": k,
        "new_only": new_only,
        "samples": samples,
        "typical": queries is None if typical is None else typical,
        "candidates": candidates,
        "of_type": of_type,
    }
    if queries is not None and target is not None:
        try:
            with Counting(err, "answering") as progress:
                if target.suffix:
                    summary = reasoner.answer_file(queries, target, progress=progress, **how)
                else:
                    named = None if labels is None else str(labels)
                    ray = RayEngine(
                        str(run), graph, evidence, named, address, workers, threads or 1
                    )
                    summary = reasoner.answer_folder(
                        queries,
                        target,
                        engine=ray if engine == "ray" else None,
                        format=shard_format,
                        shard_rows=shard_rows,
                        progress=progress,
                        **how,
                    )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"Stopped; go on with: {typed_command()}") from None
        _print_summary(summary, as_json=as_json)
        return
    with Counting(err, "asking") as progress:
        if all_missing is None:
            result = reasoner.answer(
                head=head, relation=relation, tail=tail, progress=progress, **how
            )
        else:
            result = reasoner.missing_facts(
                all_missing,
                k=k,
                sweep=sweep,
                every_entity=every_entity,
                candidates=candidates,
                of_type=of_type,
                progress=progress,
            )
    _show(result, target, as_json=as_json)


def _show(result: "Answers | MissingFacts", target: Path | None, *, as_json: bool) -> None:
    from knowformer.answering.answer_files import write_missing_facts
    from knowformer.answering.responses import AnswersResponse, MissingFactsResponse
    from knowformer.answering.results import MissingFacts

    if isinstance(result, MissingFacts) and target is not None:
        write_missing_facts(target, result)
    if as_json:
        missing = isinstance(result, MissingFacts)
        response = MissingFactsResponse.of(result) if missing else AnswersResponse.of(result)
        print_json(response.content())
    elif target is None:
        out.print(result)
    else:
        print_line(f"Written: {target}")


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


def _check_engine(
    engine: AnswerEngine, address: str | None, workers: int, queries: Path | None, out: Path | None
) -> None:
    """Ray answers files of questions into folders, and is there."""
    if engine == "local":
        if address is not None or workers:
            given = "--workers" if address is None else "--address"
            raise ConfigError(f"Expected --engine ray with {given}, got --engine local.")
        return
    if queries is None or out is None or out.suffix:
        found = "none" if out is None else f"{out.name!r}"
        raise ConfigError(
            "Expected --queries FILE and --out FOLDER with --engine ray, a folder being a name "
            f"without an ending, got {found} as --out."
        )
    require_package("ray", extra="ray", purpose="answer with --engine ray")


def _check_one_kind(
    question: dict[str, str | None],
    queries: Path | None,
    target: Path | None,
    all_missing: str | None,
) -> None:
    """One question, a file of them, or the missing facts of a relation."""
    if queries is not None and target is None:
        raise ConfigError("Expected --out with --queries, got none. Name a file for the answers.")
    if target is not None and queries is None and all_missing is None:
        raise ConfigError("Expected --queries or --all-missing with --out, got neither.")
    if target is not None and (target.suffix or queries is None):
        from knowformer.answering.query_files import file_format

        file_format(target)  # refuses an ending before any work is done
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
