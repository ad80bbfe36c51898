import numpy as np

from knowformer.evaluation.baselines.evidence import confidence, evidence
from knowformer.evaluation.baselines.popularity import Popularity
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph


def test_entities_are_counted_as_tails_and_through_inverses_as_heads(
    family: KnowledgeGraph,
) -> None:
    popularity = Popularity(family)
    mother = family.relations.id("mother_of")
    backwards = inverse_of(mother, len(family.relations))
    named = [family.entities.id(name) for name in ("bob", "ann", "zoe")]
    asked = np.full(3, mother), np.array(named)
    # Two mothers with three children: bob is a child of one of the two, ann a mother of two.
    once, twice = evidence(confidence(np.array([1.0, 2.0]), np.array([2.0, 3.0])))
    assert popularity.of(*asked).tolist() == [once, once, 0.0]
    assert popularity.of(np.full(3, backwards), np.array(named)).tolist() == [0.0, twice, 0.0]
    # Bob, cid and ann have a mother, the others have none.
    above, equal = popularity.count(np.full(2, mother), np.array([once, 0.0]))
    assert (above.tolist(), equal.tolist()) == ([0, 3], [3, len(family.entities) - 3])


def test_a_graph_without_facts_has_nothing_popular(family: KnowledgeGraph) -> None:
    empty = KnowledgeGraph(family.entities, family.relations, family.facts[:0])
    popularity = Popularity(empty)
    zero = np.zeros(1, dtype=np.int64)
    assert popularity.of(zero, zero).tolist() == [0.0]
    above, equal = popularity.count(zero, np.zeros(1))
    assert (above.tolist(), equal.tolist()) == ([0], [len(family.entities)])
