"""Tails of relations against counting."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views.tails import Tails
from tests.unit.views.asking import ranks_of


@given(seed=st.integers(0, 10**6), num_facts=st.integers(0, 60))
def test_the_most_frequent_tails_come_first_and_ties_go_by_name(
    random_graph: Callable[..., KnowledgeGraph], seed: int, num_facts: int
) -> None:
    graph = random_graph(seed, num_facts=num_facts)
    ranks = ranks_of(graph)
    tails = Tails.of(graph.adjacency.lists, ranks, len(graph.relations))
    facts = with_inverse_facts(graph.facts, len(graph.relations)).tolist()
    for relation, (start, stop) in enumerate(pairwise(tails.offsets.tolist())):
        counts = Counter(tail for _, own, tail in facts if own == relation)
        expected = sorted(counts, key=lambda tail: (-counts[tail], ranks[tail]))
        assert tails.entities[start:stop].tolist() == expected
        assert tails.counts[start:stop].tolist() == [counts[tail] for tail in expected]
        assert tails.num_facts[relation] == counts.total()
