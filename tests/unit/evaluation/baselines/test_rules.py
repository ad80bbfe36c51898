from collections.abc import Callable
from itertools import product

import pytest

from knowformer.data.dataset import Dataset
from knowformer.evaluation.baselines import rules as module
from knowformer.evaluation.baselines.evidence import PRIOR_MISSES
from knowformer.evaluation.baselines.rules import NO_STEP, Rules, learn_rules
from knowformer.graph.inverse import inverse_of, with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph

Body = tuple[int, int]


def as_dict(rules: Rules) -> dict[int, dict[Body, float]]:
    """Confidence by relation and body."""
    return {
        relation: {
            (int(rules.first[i]), int(rules.second[i])): float(rules.confidence[i])
            for i in range(rules.offsets[relation], rules.offsets[relation + 1])
        }
        for relation in range(len(rules.offsets) - 1)
    }


def count_slowly(graph: KnowledgeGraph) -> dict[int, dict[Body, float]]:
    """The definition: every walk of every two facts, in nested loops."""
    num_relations = len(graph.relations)
    facts = {tuple(fact) for fact in with_inverse_facts(graph.facts, num_relations).tolist()}
    right: dict[tuple[int, Body], int] = {}
    walks: dict[Body, int] = {}
    for x, p, y in facts:
        walks[p, NO_STEP] = walks.get((p, NO_STEP), 0) + 1
        for r in range(2 * num_relations):
            if x != y and r != p and (x, r, y) in facts:
                right[r, (p, NO_STEP)] = right.get((r, (p, NO_STEP)), 0) + 1
    for (x, p, z), (start, q, y) in product(facts, facts):
        if z != start or (y == x and q == inverse_of(p, num_relations)):
            continue
        walks[p, q] = walks.get((p, q), 0) + 1
        for r in range(2 * num_relations):
            if len({x, y, z}) == 3 and (x, r, y) in facts:
                right[r, (p, q)] = right.get((r, (p, q)), 0) + 1
    found: dict[int, dict[Body, float]] = {r: {} for r in range(2 * num_relations)}
    for (r, body), number in right.items():
        if number >= module.MIN_WALKS:
            found[r][body] = number / (walks[body] + PRIOR_MISSES)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("walks_at_once", [1, 2_000_000])
def test_confidences_are_those_of_counting_every_walk(
    random_graph: Callable[..., KnowledgeGraph],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    walks_at_once: int,
) -> None:
    monkeypatch.setattr(module, "WALKS_AT_ONCE", walks_at_once)
    graph = random_graph(seed, num_entities=8, num_facts=40)
    found, expected = as_dict(learn_rules(graph)), count_slowly(graph)
    assert sum(map(len, expected.values())) > 20
    for relation, bodies in expected.items():
        assert found[relation] == pytest.approx(bodies)


def test_the_rule_of_the_ring_is_found(ring: Dataset) -> None:
    graph = ring.train.graph
    following, skip = graph.relations.id("next"), graph.relations.id("skip")
    rules = as_dict(learn_rules(graph))
    assert max(rules[skip], key=lambda body: rules[skip][body]) == (following, following)


def test_a_fact_alone_is_no_evidence_for_itself() -> None:
    graph = KnowledgeGraph.from_triples([("a", "likes", "b"), ("c", "likes", "d")])
    assert len(learn_rules(graph)) == 0
    assert len(learn_rules(KnowledgeGraph(graph.entities, graph.relations, graph.facts[:0]))) == 0


def test_a_sample_stands_for_all_and_few_rules_are_kept(
    random_graph: Callable[..., KnowledgeGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(1, num_entities=20, num_relations=2, num_facts=200)
    everything = as_dict(learn_rules(graph))
    monkeypatch.setattr(module, "MAX_FACTS", 60)
    monkeypatch.setattr(module, "MAX_RULES", 4)
    sampled = as_dict(learn_rules(graph))
    assert all(len(bodies) == 4 for bodies in sampled.values())
    for relation, bodies in sampled.items():
        for body, confidence in bodies.items():
            assert confidence == pytest.approx(everything[relation][body], abs=0.15)
