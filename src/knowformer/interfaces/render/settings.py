"""The settings of a run for people: a table in the terminal, and a page of the documentation."""

from rich import box
from rich.table import Table

from knowformer.training.settings_reference import Setting

HEADINGS = {"model": "Model", "training": "Training", "": "Run"}
PAGE = """\
# Settings

Made from the source by `knowformer settings --markdown`. On the command line a setting is
`--set model.hidden_dim=64`, in a file for `--config` a key of a table, such as `hidden_dim` of
`[model]`, in Python `train(graph, out, settings={"model.hidden_dim": 64})`. What is not set is as
recommended for a data set of the catalogue, or else as below; `train` says which recommendations
it takes. `knowformer settings NAME` shows one setting.

"""
STOPPING_EARLY = """\
## Stopping early

A run ends after `training.max_epochs` epochs or `training.max_minutes` minutes, whichever comes
first. With `training.patience=3` it also ends once three validations in a row have set no new
record of the validation MRR; `training.validations_per_epoch` says how often there is one. The
learning rate follows the epochs and minutes of the full run, so a run that ends early ends at a
higher rate. Which weights are kept is decided on validation facts, whenever the run ends.
"""


def render_settings(settings: list[Setting]) -> Table:
    """The settings, a row each."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("setting", no_wrap=True)
    for column in ("default", "values", "meaning"):
        table.add_column(column)
    for setting in settings:
        table.add_row(setting.name, setting.default_text, setting.values, setting.meaning)
    return table


def settings_page(settings: list[Setting]) -> str:
    """The reference of all settings as Markdown."""
    page = PAGE
    for table, heading in HEADINGS.items():
        page += f"## {heading}\n\n"
        page += "| setting | default | values | meaning |\n| --- | --- | --- | --- |\n"
        for each in settings:
            if each.table == table:
                cells = (f"`{each.name}`", each.default_text, each.values, each.meaning)
                page += f"| {' | '.join(cells)} |\n"
        page += "\n"
    return page + STOPPING_EARLY
