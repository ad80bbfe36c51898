"""An audit as Markdown, for people who open the folder later."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knowformer.audit.audit import Audit

MAX_ROWS = 20


def audit_markdown(audit: "Audit") -> str:
    """Returns the whole audit as a Markdown page."""
    facts = ", ".join(f"{count:,} {name}" for name, count in audit.facts.items())
    degrees = audit.degrees
    quantiles = ", ".join(f"{name} {value:g}" for name, value in degrees.quantiles.items())
    hubs = ", ".join(f"{hub.label} ({hub.degree:,})" for hub in degrees.hubs)
    lines = [
        f"# Audit of {audit.dataset}",
        "",
        f"{audit.entities:,} entities, {audit.relations:,} relations; facts: {facts}.",
        "",
        "## Findings",
        "",
    ]
    for finding in audit.findings:
        lines += [f"- **{finding.level}: {finding.topic}.** {finding.found}"]
        lines += [f"  *Why it matters:* {finding.why}"] if finding.why else []
        lines += [f"  *What to do:* {finding.advice}"] if finding.advice else []
    lines += ["", "## Degrees", "", f"Facts per entity: mean {degrees.mean:.1f}; {quantiles}, "]
    lines[-1] += f"most {degrees.most:,}. {degrees.num_once:,} entities occur once."
    lines += ["", f"Hubs: {hubs}.", "", "## Relations", ""]
    lines += [
        "| relation | category | facts | heads | tails |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {_cell(row.label)} | {row.category} | {row.facts:,} | {row.heads:,} | {row.tails:,} |"
        for row in audit.by_relation[:MAX_ROWS]
    ]
    lines += _more(len(audit.by_relation))
    if audit.overlaps:
        lines += ["", "## Overlaps", ""]
        lines += ["| relation | is nearly | other | common pairs | of relation | of other |"]
        lines += ["| --- | --- | --- | ---: | ---: | ---: |"]
        lines += [
            f"| {_cell(row.label)} | {row.kind} | {_cell(row.other_label)} | {row.common:,} "
            f"| {row.share:.0%} | {row.share_of_other:.0%} |"
            for row in audit.overlaps[:MAX_ROWS]
        ]
        lines += _more(len(audit.overlaps))
    return "\n".join(lines) + "\n"


def _more(number: int) -> list[str]:
    more = number - MAX_ROWS
    return ["", f"{more:,} more in audit.json."] if more > 0 else []


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
