import io

from rich.console import Console

from knowformer.audit.audit import audit
from knowformer.data.loading import load_dataset
from knowformer.interfaces.render.audit import MOST_RELATIONS, render_audit


def test_an_audit_shows_counts_findings_and_where_the_rest_is():
    found = audit(load_dataset("nations"))
    console = Console(file=io.StringIO(), width=160)
    console.print(render_audit(found, where="data/[x]/audit.json"))
    shown = console.file.getvalue()
    assert f"{sum(found.facts.values()):,}: " in shown
    assert f"{len(found.by_relation) - MOST_RELATIONS:,} more in data/[x]/audit.json" in shown
    assert found.by_relation[MOST_RELATIONS - 1].label in shown
    assert all(finding.topic in shown for finding in found.findings)
