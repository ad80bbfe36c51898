import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from knowformer.explanation.check.faithfulness import (
    RandomEvidence,
    Removal,
    check_evidence,
    measure,
    score_margin,
)
from knowformer.explanation.explanation import ScoreMargin
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.prediction import Prediction
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.scores import Scores
from knowformer.scoring.scorer import Scorer
from knowformer.views.views import Outside


def test_a_margin_counts_competitors_alone() -> None:
    scores = torch.tensor([2.0, 9.0, 1.0, 1.0, 0.0])
    competitors = torch.tensor([True, False, False, True, True])  # 1 is a known answer
    prediction = Prediction(head=4, relation=0, answer=2, competitors=competitors)
    here = score_margin(Scores.of_all(scores[None]), prediction)
    assert here.score == 1.0
    assert here.rank == 2.5  # behind 0, even with 3, before 4
    expected = 1.0 - math.log(math.exp(2.0) + math.exp(1.0) + 1.0)
    assert here.log_odds == pytest.approx(expected)
    assert here.probability == pytest.approx(1 / (1 + math.exp(-expected)))


def test_an_answer_outside_of_the_view_ranks_below_it_by_the_order_of_what_is_outside() -> None:
    outside = Outside(torch.tensor([0, 2]), torch.tensor([5, 3]), torch.tensor([9, 4]))
    entities, values = torch.tensor([0, 2, 6]), torch.tensor([2.0, 0.5, 1.0])
    scores = Scores(values, torch.tensor([0, 3]), 8, entities=entities, outside=outside)
    competitors = torch.ones(8, dtype=torch.bool)
    competitors[[3, 6]] = False  # the answer, and a known one
    here = score_margin(scores, Prediction(head=0, relation=0, answer=3, competitors=competitors))
    assert here.score == 0.5
    assert here.rank == 4.0  # behind 0, 2 and 5
    expected = 0.5 - math.log(math.exp(2.0) + math.exp(0.5))
    assert here.log_odds == pytest.approx(expected)
    assert here.probability == pytest.approx(1 / (1 + math.exp(-expected)))


def test_random_evidence_is_as_near_and_never_what_was_named() -> None:
    nearness = np.array([1, 1, 1, 2, 2, 3, 3, 3])
    others = RandomEvidence(nearness)
    for seed in range(20):
        drawn = others.draw([0, 3, 5], np.random.default_rng(seed))
        assert nearness[drawn].tolist() == [1, 2, 3]
        assert not {0, 3, 5} & set(drawn)


def test_where_none_is_as_near_the_next_nearest_is_drawn_and_none_twice() -> None:
    others = RandomEvidence(np.array([1, 5, 7, 30]), never=3)
    drawn = others.draw([0], np.random.default_rng(0))
    assert drawn == [1]
    assert RandomEvidence(np.array([1, 1, 9])).draw([0, 1], np.random.default_rng(0)) == [2]


def test_all_random_evidence_is_drawn_in_time() -> None:
    others = RandomEvidence(np.zeros(6, dtype=np.int64), never=5)
    seen = {others.draw([0], np.random.default_rng(seed))[0] for seed in range(100)}
    assert seen == {1, 2, 3, 4}


@pytest.fixture
def removal(
    random_graph: Callable[..., KnowledgeGraph], finder: Callable[..., EvidenceFinder]
) -> tuple[Removal, EvidenceGraph, EvidenceFinder, Prediction]:
    graph = random_graph(7)
    found = finder(graph)
    prediction = found.prediction(0, 1, 3)
    evidence = found.find(prediction)
    return Removal(found, evidence), evidence.graph, found, prediction


def test_removing_nothing_changes_nothing(
    removal: tuple[Removal, EvidenceGraph, EvidenceFinder, Prediction],
) -> None:
    remove, graph, found, prediction = removal
    before = score_margin(found.tracer.score(prediction, graph), prediction)
    everyone = range(graph.num_entities)
    for after in (
        remove.without_facts([]),
        remove.with_facts_alone(range(graph.num_facts)),
        remove.without_attending([]),
        remove.attending_alone(everyone),
    ):
        assert after.log_odds == pytest.approx(before.log_odds, abs=1e-9)
    assert remove.without_facts(range(graph.num_facts)) == remove.with_facts_alone([])
    nobody = remove.attending_alone([])
    assert remove.without_attending(everyone).log_odds == pytest.approx(nobody.log_odds)
    assert nobody.log_odds != pytest.approx(before.log_odds, abs=1e-9)


def test_measuring_removes_the_named_once_and_others_as_often_as_drawn() -> None:
    asked: list[list[int]] = []

    def ask(pieces: object) -> ScoreMargin:
        asked.append(list(pieces))  # pyright: ignore[reportArgumentType]
        log_odds = -3.0 if asked[-1] == [0, 1] else 0.5
        return ScoreMargin(
            score=0.0,
            log_odds=log_odds,
            truth_log_odds=log_odds,
            probability=0.5,
            rank=1.0,
            rank_among_all=1.0,
        )

    before = ScoreMargin(
        score=0.0, log_odds=1.0, truth_log_odds=1.0, probability=0.7, rank=1.0, rank_among_all=1.0
    )
    found = measure(
        "paths",
        [0, 1],
        ask,
        RandomEvidence(np.zeros(9, dtype=np.int64)),
        before=before,
        num_draws=4,
        random=np.random.default_rng(0),
    )
    assert (found.size, found.pieces, found.loss.log_odds) == (2, "facts", 4.0)
    assert [loss.log_odds for loss in found.random] == [0.5] * 4
    assert found.random_log_odds == 0.5
    assert all(len(draw) == 2 for draw in asked)
    assert found.verdict == "carry the answer"
    assert found.sentence() == (
        "Its paths carry the answer: without their 2 facts its odds fall 55-fold (probability "
        "lost: 0.200), without others at random its odds fall by 39 %"
    )


def test_every_kind_is_removed_by_what_it_is_made_of(
    removal: tuple[Removal, EvidenceGraph, EvidenceFinder, Prediction],
) -> None:
    remove, graph, _, prediction = removal
    assert remove.without("paths", [0, 1]) == remove.without_facts([0, 1])
    assert remove.alone("paths", [0, 1]) == remove.with_facts_alone([0, 1])
    for kind in ("prototypes", "attended"):
        assert remove.without(kind, [0, 1]) == remove.without_attending([0, 1])
        assert remove.alone(kind, [0, 1]) == remove.attending_alone([0, 1])
        assert RandomEvidence.of(kind, graph, prediction).never == prediction.answer
    assert len(RandomEvidence.of("paths", graph, prediction).nearness) == graph.num_facts


def test_paths_and_prototypes_are_checked_where_there_are_any(
    family: KnowledgeGraph, finder: Callable[..., EvidenceFinder]
) -> None:
    bound = finder(family, seed=2)
    for name, expected in (("bob", {"paths", "prototypes"}), ("zoe", {"prototypes"})):
        prediction = bound.prediction(family.entities.id("eve"), 0, family.entities.id(name))
        evidence = bound.find(prediction)
        before = score_margin(evidence.trace.scores, prediction)
        remove = Removal(bound, evidence)
        checks = check_evidence(
            evidence, remove, before=before, num_draws=3, random=np.random.default_rng(0)
        )
        assert {check.evidence for check in checks} == expected
        for check in checks:
            pieces = evidence.pieces(check.evidence)
            assert check.size == len(pieces)
            after = remove.without(check.evidence, pieces)
            assert check.loss.log_odds == pytest.approx(before.log_odds - after.log_odds)
            assert len(check.random) == 3


def ask_afresh(found: EvidenceFinder, facts: torch.Tensor, prediction: Prediction) -> ScoreMargin:
    """The model on a graph of these facts, as it would be asked if there were no others."""
    graph = KnowledgeGraph(found.graph.entities, found.graph.relations, facts)
    query = torch.tensor([prediction.head]), torch.tensor([prediction.relation])
    scores = Scorer(found.tracer.model, graph, seed=0).score(*query, outside=True)
    return score_margin(scores, prediction)


@pytest.mark.parametrize("at", [11, 24, 40])
def test_in_a_view_the_model_is_asked_anew_on_the_facts_that_are_left(
    random_graph: Callable[..., KnowledgeGraph], finder: Callable[..., EvidenceFinder], at: int
) -> None:
    graph = random_graph(7, num_entities=30, num_facts=60)
    found = finder(graph, view_size=9)
    evidence = found.find(found.prediction(*graph.facts[at].tolist()))
    remove, seen, prediction = Removal(found, evidence), evidence.graph, evidence.prediction
    others = torch.cat([graph.facts[:at], graph.facts[at + 1 :]])
    for numbers in ([0], [1, 2], range(seen.num_facts)):
        named = seen.facts(numbers)
        left = others[~(others[:, None] == named).all(-1).any(1)]
        for margin, facts in (
            (remove.without_facts(numbers), left),
            (remove.with_facts_alone(numbers), named),
        ):
            expected = ask_afresh(found, facts, prediction)
            assert margin.model_dump() == pytest.approx(expected.model_dump(), rel=1e-9)


def test_an_answer_that_falls_out_of_its_view_has_lost_something_finite(
    finder: Callable[..., EvidenceFinder],
) -> None:
    facts = [("a", "r", "b"), ("b", "r", "c"), ("a", "s", "d"), ("d", "s", "e"), ("e", "s", "f")]
    graph = KnowledgeGraph.from_triples(facts)
    found = finder(graph, view_size=4)
    names = graph.entities.id
    prediction = found.prediction(names("a"), 0, names("c"))
    evidence = found.find(prediction)
    assert evidence.sees_answer
    remove = Removal(found, evidence)
    before = score_margin(evidence.trace.scores, prediction)
    assert remove.without_attending([]) == before
    path = [n for n in range(evidence.graph.num_facts) if evidence.graph.facts([n])[0, 1] == 0]
    left = found.sight.without(prediction, evidence.graph.facts(path))
    assert set(left.entities.tolist()) == {names(name) for name in "adef"}
    after = remove.without_facts(path)
    assert after.score == found.tracer.score(prediction, left).values.min().item()
    assert after.rank == 5  # behind all four in the view; b is a known answer
    assert math.isfinite(after.log_odds)
