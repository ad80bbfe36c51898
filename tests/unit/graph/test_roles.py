import numpy as np
import pytest

from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.roles import roles_of

DRUGS = [(f"drug{n}", "treats", f"disease{n % 3}") for n in range(6)]
DISEASES = [("disease0", "resembles", "disease1"), ("disease1", "resembles", "disease2")]
GENES = [(f"drug{n}", "binds", f"gene{n % 2}") for n in range(5)]


@pytest.fixture
def graph() -> KnowledgeGraph:
    """Drugs treat diseases and bind genes; ``nobody`` has no facts."""
    return KnowledgeGraph.from_triples([*DRUGS, *DISEASES, *GENES], more_entities=["nobody"])


def test_entities_of_a_role_are_heads_of_a_relation_or_tails_through_its_inverse(
    graph: KnowledgeGraph,
) -> None:
    roles, names = roles_of(graph.adjacency), graph.entities.names
    resembles = graph.relations.id("resembles")
    assert {names[e] for e in roles.entities(resembles)} == {"disease0", "disease1"}
    tails = roles.entities(inverse_of(resembles, len(graph.relations)))
    assert {names[e] for e in tails} == {"disease1", "disease2"}
    assert roles_of(graph.adjacency) is roles


def test_a_relation_that_no_entity_of_its_kind_has_gets_next_to_nothing(
    graph: KnowledgeGraph,
) -> None:
    roles = roles_of(graph.adjacency)
    treats, binds, resembles = map(graph.relations.id, ("treats", "binds", "resembles"))
    # drug5 binds nothing yet, but its like do.
    share = np.exp(roles.log_share(graph.entities.id("drug5")))
    assert share.sum() == pytest.approx(1.0)
    assert share[treats] > share[binds] > 10 * share[resembles] > 0


def test_both_sides_are_counted_apart(graph: KnowledgeGraph) -> None:
    roles = roles_of(graph.adjacency)
    disease = graph.entities.id("disease1")
    treats, resembles = graph.relations.id("treats"), graph.relations.id("resembles")
    as_head, as_tail = roles.log_share(disease), roles.log_share(disease, backwards=True)
    assert as_head[resembles] > as_head[treats]
    assert as_tail[treats] > as_tail[resembles]


def test_without_facts_of_its_own_an_entity_has_the_shares_of_all(graph: KnowledgeGraph) -> None:
    roles = roles_of(graph.adjacency)
    assert roles.log_share(graph.entities.id("nobody")) == pytest.approx(roles.log_prior)
