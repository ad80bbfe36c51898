from collections.abc import Callable

from knowformer.data.labels import Labels
from knowformer.explanation.comparison import Comparison
from knowformer.explanation.explainer import Explainer
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.graph.knowledge_graph import KnowledgeGraph


def test_the_evidence_of_both_answers_stands_side_by_side(
    family: KnowledgeGraph, finder: Callable[..., EvidenceFinder]
) -> None:
    explainer = Explainer(finder(family), labels=Labels({"bob": "Robert"}), seed=0)
    first, second = (explainer.explain("ann", "mother_of", name) for name in ("bob", "eve"))
    table = Comparison(first, second).table()
    assert table.title == "(ann, mother_of, ?)"
    assert {row[0] for row in table.rows} <= {"Robert", "eve"}
    assert len(table.rows) == len(first.table().rows) + len(second.table().rows)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert f"Robert: {first.place()}; eve: {second.place()}" == table.caption
