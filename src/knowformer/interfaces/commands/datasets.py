"""``knowformer datasets``: the catalogue of data sets; ``datasets get NAME`` fetches one."""

from typing import Annotated, Any

import typer

from knowformer.interfaces.console import JsonOption, err, out, print_json, print_line
from knowformer.interfaces.help import PlainCommand
from knowformer.interfaces.volume import VolumeGroup

app = typer.Typer(
    cls=VolumeGroup,
    invoke_without_command=True,
    rich_markup_mode=None,
)


@app.callback()
def list_datasets(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the catalogue of data sets, or fetch one.

    Examples:
        knowformer datasets
        knowformer datasets get wn18rr_v1
    """
    if context.invoked_subcommand is not None:
        return
    from knowformer.data import catalog
    from knowformer.interfaces.render.datasets import render_datasets
    from knowformer.interfaces.schemas import DatasetResponse

    entries = [DatasetResponse.of(entry) for entry in catalog.entries().values()]
    if as_json:
        print_json([entry.content() for entry in entries])
    else:
        out.print(render_datasets(entries))


@app.command("get", cls=PlainCommand)
def get_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name in the catalogue.")],
    as_json: JsonOption = False,
) -> None:
    """Find a data set on this machine or download it, and verify its checksums.

    Examples:
        knowformer datasets get wn18rr_v1
    """
    from knowformer.data import catalog
    from knowformer.interfaces.progress import counting_progress
    from knowformer.interfaces.schemas import DatasetResponse

    entry = catalog.find(name)
    with counting_progress(err, "download") as progress:
        tasks: dict[str, Any] = {}

        def show(path: str, done: int, total: int | None) -> None:
            if path not in tasks:
                tasks[path] = progress.add_task(path, total=total)
            progress.update(tasks[path], completed=done, total=total)

        folder = catalog.fetch(entry, progress=show)
    if as_json:
        print_json(DatasetResponse.of(entry).content())
    else:
        print_line(f"{name}: verified in {folder}")
