"""The catalogue of data sets for people."""

from rich import box
from rich.console import Group
from rich.table import Table

from knowformer.interfaces.schemas import DatasetResponse


def render_datasets(entries: list[DatasetResponse]) -> Group:
    """The catalogue, a table per kind of data set."""
    kinds = dict.fromkeys(entry.kind for entry in entries)
    return Group(*(_table(kind, [e for e in entries if e.kind == kind]) for kind in kinds))


def _table(kind: str, entries: list[DatasetResponse]) -> Table:
    table = Table(title=kind, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("name", no_wrap=True, min_width=16)
    for column in ("entities", "relations", "facts", "test"):
        table.add_column(column, justify="right", min_width=9)
    table.add_column("where", no_wrap=True, min_width=11)
    for entry in entries:
        facts = entry.facts.get("train", entry.facts.get("edges"))
        table.add_row(
            entry.name,
            f"{entry.entities:,}",
            f"{entry.relations:,}",
            f"{facts:,}",
            f"{entry.test_facts:,}" if entry.test_facts else "-",
            "embedded" if entry.embedded else "here" if entry.folder else "to download",
        )
    return table
