"""Missing facts against asking every question by itself."""

import pytest

from knowformer.answering.answerer import Answerer
from knowformer.answering.ranking import Options
from knowformer.errors import DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph


def test_missing_facts_are_the_best_of_all_questions(answerer: Answerer):
    found = answerer.missing_facts("mother_of", k=4)
    questions = [answerer.question(head=head, relation="mother_of") for head in ("ann", "eve")]
    answers = answerer.answer(questions, Options(k=9, new_only=True))
    facts = [(a.probability, h, t) for one in answers for h, _, t, a in one.facts()]
    best = sorted(facts, reverse=True)[:4]
    assert [(f.probability, f.head, f.tail) for f in found.facts] == [
        (pytest.approx(p), h, t) for p, h, t in best
    ]
    assert (found.num_questions, found.num_candidates) == (2, 2 * 6 - 3)
    labels = {f.head: f.head_label for f in found.facts}
    assert labels.get("ann", "Ann Archer") == "Ann Archer"


def test_tails_may_be_asked_for_heads_and_then_every_entity(answerer: Answerer):
    swept = answerer.missing_facts("mother_of", k=99, sweep="tails")
    assert {f.tail for f in swept.facts} == {"ann", "bob", "cid"}
    steps: list[tuple[int, int]] = []
    every = answerer.missing_facts(
        "mother_of", k=99, every_entity=True, progress=lambda *step: steps.append(step)
    )
    assert len(every.facts) == 6 * 6 - 3
    assert [f.rank for f in every.facts] == list(range(1, 34))
    assert steps == [(6, 6)]


def test_a_relation_without_facts_has_nobody_to_ask(build_answerer):
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("a", "s", "b")])
    bare = KnowledgeGraph(graph.entities, graph.relations, graph.facts[:1])
    (empty,) = set(graph.relations) - {graph.relations.names[int(bare.facts[0, 1])]}
    with pytest.raises(DataError, match=f"got '{empty}', which has none"):
        build_answerer(bare).missing_facts(empty, k=1)
