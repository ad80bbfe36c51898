"""The ``knowformer`` command."""

from typing import Annotated

import typer

from knowformer import __version__
from knowformer.interfaces.commands import (
    answer,
    audit,
    calibrate,
    datasets,
    evaluate,
    explain,
    import_data,
    train,
)
from knowformer.interfaces.console import out
from knowformer.interfaces.entry import run_app
from knowformer.interfaces.plugins import PluginGroup

app = typer.Typer(
    cls=PluginGroup,
    help="Reason over knowledge graphs: train a KnowFormer, evaluate it, ask it questions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"knowformer {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Reason over knowledge graphs: train a KnowFormer, evaluate it, ask it questions."""
    del version  # handled by its callback


app.command("train")(train.command)
app.command("evaluate")(evaluate.command)
app.command("answer")(answer.command)
app.command("explain")(explain.command)
app.command("calibrate")(calibrate.command)
app.command("import")(import_data.command)
app.command("audit")(audit.command)
app.add_typer(datasets.app, name="datasets")


def main() -> None:
    """Runs ``knowformer``."""
    run_app(app)


if __name__ == "__main__":
    main()
