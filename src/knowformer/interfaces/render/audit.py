"""An audit for people, as tables."""

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from knowformer.audit.audit import Audit
from knowformer.audit.findings import Level
from knowformer.errors import printable
from knowformer.interfaces.hints import as_typed

MARKS: dict[Level, str] = {
    "warning": "[bold red]warning[/]",
    "note": "[yellow]note[/]",
    "good": "[green]good[/]",
}
MOST_RELATIONS = 12
NUM_HUBS = 3


def plain(text: str) -> str:
    """Returns text that is no markup and holds no commands for a terminal."""
    return escape(printable(text))


def render_audit(audit: Audit, *, where: str | None = None) -> Group:
    """Returns tables of a data set's counts, relations, overlaps and findings.

    Args:
        audit: the audit.
        where: where the rest of it can be read.
    """
    overlaps = [_overlaps(audit, where)] if audit.overlaps else []
    return Group(_counts(audit), _relations(audit, where), *overlaps, _findings(audit))


def _counts(audit: Audit) -> Table:
    table = Table(title=plain(audit.dataset), title_justify="left", title_style="bold")
    table.add_column("metric")
    table.add_column("value")
    parts = ", ".join(f"{count:,} {name}" for name, count in audit.facts.items())
    degrees, components = audit.degrees, audit.components
    hubs = ", ".join(f"{hub.label} ({hub.degree:,})" for hub in degrees.hubs[:NUM_HUBS])
    quantiles = degrees.quantiles
    overlaps = [overlap.kind for overlap in audit.overlaps]
    rows = {
        "facts": f"{sum(audit.facts.values()):,}: {parts}",
        "entities": f"{audit.entities:,}",
        "relations": f"{audit.relations:,}",
        "facts per entity": f"mean {degrees.mean:.1f}, median {quantiles['median']:g}, from "
        f"{quantiles['least']:g} to {degrees.most:,}; 90% have {quantiles['90%']:g} or fewer",
        "hubs": hubs,
        "repeated rows": f"{audit.repeated_rows:,}",
        "self-loops": f"{audit.self_loops:,}",
        "overlapping relations": f"{overlaps.count('duplicate'):,} duplicate, "
        f"{overlaps.count('inverse'):,} inverse, {overlaps.count('symmetric'):,} symmetric",
        "components": f"{components.number:,}, the largest with {components.largest:,} entities",
    }
    for name, held in audit.held_out.items():
        rows[f"{name} facts"] = (
            f"{held.linked:,} linked already, {held.leaked:,} leaked, "
            f"{held.with_unseen:,} of unseen entities"
        )
    for what, number in rows.items():
        table.add_row(what, plain(number))
    return table


def _relations(audit: Audit, where: str | None) -> Table:
    table = Table(title="relations", title_justify="left", title_style="bold")
    table.add_column("relation", overflow="fold")
    table.add_column("category")
    for column in ("facts", "heads", "tails"):
        table.add_column(column, justify="right")
    for row in audit.by_relation[:MOST_RELATIONS]:
        table.add_row(
            plain(row.label), row.category, f"{row.facts:,}", f"{row.heads:,}", f"{row.tails:,}"
        )
    _tell_more(table, len(audit.by_relation), where)
    return table


def _overlaps(audit: Audit, where: str | None) -> Table:
    table = Table(title="overlaps", title_justify="left", title_style="bold")
    for column in ("relation", "is nearly", "other"):
        table.add_column(column, overflow="fold", no_wrap=column == "is nearly")
    for column in ("pairs", "of relation", "of other"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in audit.overlaps[:MOST_RELATIONS]:
        cells = (f"{row.common:,}", f"{row.share:.0%}", f"{row.share_of_other:.0%}")
        kind = f"{row.kind} of" if row.kind != "symmetric" else row.kind
        table.add_row(plain(row.label), kind, plain(row.other_label), *cells)
    _tell_more(table, len(audit.overlaps), where)
    return table


def _tell_more(table: Table, number: int, where: str | None) -> None:
    """Says how many rows are left out, and where they are."""
    more = number - MOST_RELATIONS
    if more > 0:
        table.caption = f"{more:,} more in {plain(where)}" if where else f"{more:,} more"
        table.caption_justify = "left"


def _findings(audit: Audit) -> Table:
    table = Table(title="findings", title_justify="left", title_style="bold", show_lines=True)
    table.add_column("")
    table.add_column("finding, why it matters, what to do", overflow="fold")
    for finding in audit.findings:
        text = f"[bold]{plain(finding.topic)}:[/] {plain(finding.found)}"
        text += f"\n[dim]Why it matters:[/] {plain(finding.why)}" if finding.why else ""
        text += f"\n[dim]What to do:[/] {plain(as_typed(finding.advice))}" if finding.advice else ""
        table.add_row(MARKS[finding.level], text)
    return table
