"""``knowformer import FILE... --out DIR``: own data in, audited."""

from pathlib import Path
from typing import Annotated, Any

import typer

from knowformer.errors import DataError
from knowformer.interfaces.audit_tables import audit_tables
from knowformer.interfaces.console import JsonOption, err, out, print_json, print_line
from knowformer.interfaces.progress import import_progress
from knowformer.sources.delimited import DELIMITERS, Dialect
from knowformer.sources.folder import BAD_ROWS_FILE
from knowformer.sources.formats import Format
from knowformer.sources.importing import ImportOptions, ImportResult, import_files
from knowformer.sources.splitting import Shares


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Facts: TSV, CSV, Parquet, N-Triples, Turtle, RDF/XML; gzip too. Joined.",
        ),
    ],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write.")],
    format_: Annotated[
        Format | None, typer.Option("--format", help="Of all files; else told by their names.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="H,R,T", help="Columns of head, relation, tail: names, or numbers from 1."
        ),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Between columns: a character, or tab, comma, space...")
    ] = None,
    quote: Annotated[
        str | None, typer.Option(help="Around names; '' for none. By default \", with tabs none.")
    ] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Is the first line a header?")
    ] = None,
    temporal: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Times of facts: train on the earliest, test on last."),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option("--labels", metavar="FILE", help="Readable names: id and name a line."),
    ] = None,
    valid: Annotated[
        float | None, typer.Option(help="Held out: a share below 1, or a number of facts.")
    ] = None,
    test: Annotated[float | None, typer.Option(help="The same, for the test.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides the split.")] = 0,
    no_leaks: Annotated[
        bool, typer.Option("--no-leaks", help="Keep twin facts (near-inverses) in one part.")
    ] = False,
    keep_literals: Annotated[
        bool, typer.Option("--keep-literals", help="RDF: make entities of literals.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="List bad rows, keep the good ones, exit 2.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier import.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Import facts from files: read, split, audit, and write a data-set folder."""
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
        shares=Shares(valid, test),
        seed=seed,
        no_leaks=no_leaks,
        keep_literals=keep_literals,
        skip_bad=skip_bad,
    )
    with import_progress(err) as progress:
        result = import_files(files, folder, options=options, force=force, progress=progress)
    if as_json:
        print_json(_response(result))
    else:
        out.print(audit_tables(result.audit, where=str(folder / "audit.json")))
        for note in result.notes:
            print_line(note)
        print_line(f"Data set: {folder}. Next: knowformer train {folder} --out runs/{folder.name}")
    if bad := result.bad_rows.rows:
        raise DataError(
            f"Expected good rows only, passed over {len(bad):,}, all listed in "
            f"{folder / BAD_ROWS_FILE}; the first: {bad[0].reason} ({bad[0].place})."
        )


def _delimiter(given: str | None) -> str | None:
    names = {name: character for character, name in DELIMITERS.items()} | {"\\t": "\t"}
    return None if given is None else names.get(given, given)


def _response(result: ImportResult) -> dict[str, Any]:
    return {
        "folder": str(result.folder),
        "rows": result.num_rows,
        "bad_rows": len(result.bad_rows.rows),
        "notes": result.notes,
        "audit": result.audit.model_dump(mode="json"),
    }
