import numpy as np
import pytest

from knowformer.evaluation.baselines import matches as module
from knowformer.evaluation.baselines.evidence import evidence
from knowformer.evaluation.baselines.matches import Matches, find_matches
from knowformer.evaluation.baselines.rules import NO_STEP, Rules
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph


@pytest.fixture
def rules(family: KnowledgeGraph) -> Rules:
    """father_of(x, y) <- mother_of(x, y), and <- married_to(z, x), mother_of(z, y)."""
    mother, father, married = map(family.relations.id, ("mother_of", "father_of", "married_to"))
    backwards = inverse_of(married, len(family.relations))
    offsets = np.zeros(2 * len(family.relations) + 1, dtype=np.int64)
    offsets[father + 1 :] = 2
    return Rules(
        offsets,
        np.array([backwards, mother]),
        np.array([mother, NO_STEP]),
        np.array([0.5, 0.25]),
    )


def ask(family: KnowledgeGraph, rules: Rules, *heads: str) -> Matches:
    asked = np.array([family.entities.id(head) for head in heads])
    relations = np.full(len(heads), family.relations.id("father_of"))
    return find_matches(rules, family.adjacency, asked, relations)


def test_rules_of_one_and_two_steps_reach_their_entities(
    family: KnowledgeGraph, rules: Rules
) -> None:
    found = ask(family, rules, "dan", "zoe", "eve")
    reached = [
        (query, family.entities.names[entity])
        for query, entity in zip(found.queries.tolist(), found.entities.tolist(), strict=True)
    ]
    assert reached == [(0, "bob"), (0, "cid"), (2, "ann")]
    assert found.evidence.tolist() == evidence(np.array([0.5, 0.5, 0.25])).tolist()
    queries, names = np.array([0, 1, 2]), ("cid", "bob", "ann")
    entities = np.array([family.entities.id(name) for name in names])
    assert (found.evidence_of(queries, entities) > 0).tolist() == [True, False, True]
    assert len(found.without(queries, entities).pairs) == 1


def test_a_rule_that_leads_anywhere_is_not_followed(
    family: KnowledgeGraph, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WALKS", 1)
    assert ask(family, rules, "dan").pairs.tolist() == []
    assert len(ask(family, rules, "eve").pairs) == 1
