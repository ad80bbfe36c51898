"""``knowformer import FILE... --out DIR``: own data in, audited."""

from pathlib import Path
from shlex import quote as quote_path
from typing import TYPE_CHECKING, Annotated

import typer

from knowformer.choices import Format
from knowformer.errors import DataError
from knowformer.interfaces.console import (
    JsonOption,
    err,
    out,
    print_error,
    print_json,
    print_line,
)
from knowformer.interfaces.hints import as_typed

if TYPE_CHECKING:
    from knowformer.importing.importing import ImportResult

OUTPUT = "Output"
READING = "Reading; what is not given is detected, and reported"
SPLITTING = "Splitting into train, valid and test"


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Files of facts, which are joined: TSV, CSV, JSON Lines, Parquet, N-Triples, "
            "Turtle or RDF/XML, each also as .gz.",
        ),
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="Data-set folder to write.", rich_help_panel=OUTPUT
        ),
    ],
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace the folder, if an earlier import made it.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    mapped: Annotated[
        bool | None,
        typer.Option(
            "--mapped/--text",
            help="Write arrays that stay on disk and open at once, or text; by default arrays from "
            "five million facts on.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help=f"Format of all files, whatever their names: {', '.join(Format)}.",
            rich_help_panel=READING,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="H,R,T",
            help="Columns of head, relation and tail: names in the header line, or numbers from 1.",
            rich_help_panel=READING,
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR",
            help="What separates columns: a character, or tab, comma, semicolon, pipe, space.",
            rich_help_panel=READING,
        ),
    ] = None,
    quote: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR",
            help="What encloses names that hold delimiters; '' for nothing.",
            rich_help_panel=READING,
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line names the columns.",
            rich_help_panel=READING,
        ),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="Readable names: a table of ids and names.",
            rich_help_panel=READING,
        ),
    ] = None,
    keep_literals: Annotated[
        bool,
        typer.Option(
            "--keep-literals",
            help="Make entities of RDF literals instead of leaving them out.",
            rich_help_panel=READING,
        ),
    ] = False,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad",
            help="Pass over rows that cannot be read, list them, and end with exit code 2.",
            rich_help_panel=READING,
        ),
    ] = False,
    valid: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Facts held out for validation: a fraction below 1, or a number of facts. A "
            "tenth, at most 10,000, if not given.",
            rich_help_panel=SPLITTING,
        ),
    ] = None,
    test: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Facts held out for the test, given in the same way.",
            rich_help_panel=SPLITTING,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Random seed of the split.", rich_help_panel=SPLITTING
        ),
    ] = 0,
    temporal: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Split by the time in this column, numbers or ISO dates: train on the earliest "
            "facts, test on the latest.",
            rich_help_panel=SPLITTING,
        ),
    ] = None,
    no_leaks: Annotated[
        bool,
        typer.Option(
            "--no-leaks",
            help="Keep facts that give each other away in the same part: those of relations that "
            "are nearly equal, inverse or symmetric.",
            rich_help_panel=SPLITTING,
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Import facts from tables or RDF: read, check, split, and write a data-set folder.

    Examples:
        knowformer import facts.csv --columns subject,predicate,object --out mine
        knowformer import graph.ttl.gz --out mine --no-leaks
    """
    from knowformer.data.readers.columns import Dialect
    from knowformer.data.splitting import SplitSizes
    from knowformer.importing.importing import ImportOptions, import_files
    from knowformer.interfaces.progress import import_progress

    options = ImportOptions(
        format=format_,
        dialect=Dialect(
            delimiter=_delimiter(delimiter),
            quote=quote,
            header=header,
            columns=None if columns is None else tuple(c.strip() for c in columns.split(",")),
            time=temporal,
        ),
        labels=tuple(labels or ()),
        sizes=SplitSizes(valid, test),
        seed=seed,
        no_leaks=no_leaks,
        keep_literals=keep_literals,
        skip_bad=skip_bad,
        mapped=mapped,
    )
    with import_progress(err) as progress:
        result = import_files(files, folder, options=options, force=force, progress=progress)
    _show(result, as_json=as_json)


def _show(result: "ImportResult", *, as_json: bool) -> None:
    """Prints what an import has done; rows that it passed over are the input's fault."""
    from knowformer.importing.folder import BAD_ROWS_FILE
    from knowformer.interfaces.render.audit import render_audit
    from knowformer.interfaces.schemas import ImportResponse

    folder = result.folder
    if as_json:
        print_json(ImportResponse.of(result).content())
    else:
        out.print(render_audit(result.audit, where=str(folder / "audit.json")))
        for note in result.notes:
            print_line(as_typed(note))
        next_run = quote_path(str(Path("runs") / folder.resolve().name))
        print_line(f"Data set: {folder}; its audit: {folder / 'audit.md'}")
        print_line(f"Next: knowformer train {quote_path(str(folder))} --out {next_run}")
    if bad := result.bad_rows.rows:
        print_error(
            f"Expected good rows only, passed over {len(bad):,}, all listed in "
            f"{folder / BAD_ROWS_FILE}; the first: {bad[0].reason} ({bad[0].place})."
        )
        raise typer.Exit(DataError.exit_code)


def _delimiter(given: str | None) -> str | None:
    from knowformer.data.readers.columns import DELIMITERS

    names = {name: character for character, name in DELIMITERS.items()} | {"\\t": "\t"}
    return None if given is None else names.get(given, given)
