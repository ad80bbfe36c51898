"""Tables for people that are no result's own; answers and reports print themselves."""

from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table


def datasets_tables(rows: list[dict[str, Any]]) -> Group:
    """The catalogue, a table per kind of data set."""
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return Group(*(_datasets_table(kind, [r for r in rows if r["kind"] == kind]) for kind in kinds))


def _datasets_table(kind: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=kind, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("name", no_wrap=True, min_width=16)
    for column in ("entities", "relations", "facts", "test"):
        table.add_column(column, justify="right", min_width=9)
    table.add_column("where", no_wrap=True, min_width=11)
    for row in rows:
        facts = row["facts"].get("train", row["facts"].get("edges"))
        table.add_row(
            row["name"],
            f"{row['entities']:,}",
            f"{row['relations']:,}",
            f"{facts:,}",
            f"{row['test_facts']:,}" if row["test_facts"] else "-",
            "embedded" if row["embedded"] else "here" if row["folder"] else "to download",
        )
    return table
