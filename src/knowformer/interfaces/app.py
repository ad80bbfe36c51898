"""The ``knowformer`` command, assembled; ``interfaces.cli`` runs it."""

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
    pretrain,
    serve,
    settings,
    train,
    tune,
)
from knowformer.interfaces.help import HELP_OPTIONS, PlainCommand
from knowformer.interfaces.plugins import PluginGroup

app = typer.Typer(
    cls=PluginGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": list(HELP_OPTIONS)},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"knowformer {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Find the missing facts of a knowledge graph: train a model on it, then ask it questions.

    'knowformer COMMAND --help' lists the options of a command.

    Examples:
        knowformer train facts.tsv --out runs/mine --max-minutes 10
        knowformer evaluate runs/mine
        knowformer answer runs/mine --head aspirin --relation treats
    """
    del version  # handled by its callback


COMMANDS = {
    "train": train.command,
    "pretrain": pretrain.command,
    "tune": tune.command,
    "evaluate": evaluate.command,
    "answer": answer.command,
    "explain": explain.command,
    "serve": serve.command,
    "calibrate": calibrate.command,
    "import": import_data.command,
    "audit": audit.command,
    "settings": settings.command,
}
for name, command in COMMANDS.items():
    app.command(name, cls=PlainCommand)(command)
app.add_typer(datasets.app, name="datasets")
