import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from knowformer.explanation.check.faithfulness import RandomEvidence, Removal, measure, standing
from knowformer.explanation.explanation import (
    Loss,
    Standing,
    odds_left,
    same_decimals,
    verdict_on,
)
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.tracing import Prediction
from knowformer.graph.knowledge_graph import KnowledgeGraph


def test_standing_counts_rivals_alone() -> None:
    scores = torch.tensor([2.0, 9.0, 1.0, 1.0, 0.0])
    rivals = torch.tensor([True, False, False, True, True])  # 1 is a known answer
    here = standing(scores, Prediction(head=4, relation=0, answer=2, rivals=rivals))
    assert here.score == 1.0
    assert here.rank == 2.5  # behind 0, even with 3, before 4
    expected = 1.0 - math.log(math.exp(2.0) + math.exp(1.0) + 1.0)
    assert here.log_odds == pytest.approx(expected)
    assert here.probability == pytest.approx(1 / (1 + math.exp(-expected)))


def test_a_loss_is_positive_where_the_answer_does_worse() -> None:
    before = Standing(score=2.0, log_odds=1.0, probability=0.7, rank=1.0)
    after = Standing(score=0.5, log_odds=-1.0, probability=0.3, rank=4.0)
    loss = Loss.between(before, after)
    assert (loss.score, loss.log_odds, loss.rank) == (1.5, 2.0, 3.0)
    assert loss.probability == pytest.approx(0.4)


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
    evidence = EvidenceGraph(graph.adjacency)
    return Removal(found.tracer, evidence, prediction), evidence, found, prediction


def test_removing_nothing_changes_nothing(
    removal: tuple[Removal, EvidenceGraph, EvidenceFinder, Prediction],
) -> None:
    remove, graph, found, prediction = removal
    before = standing(found.tracer.score(prediction, graph.edges), prediction)
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

    def ask(pieces: object) -> Standing:
        asked.append(list(pieces))  # pyright: ignore[reportArgumentType]
        log_odds = -3.0 if asked[-1] == [0, 1] else 0.5
        return Standing(score=0.0, log_odds=log_odds, probability=0.5, rank=1.0)

    before = Standing(score=0.0, log_odds=1.0, probability=0.7, rank=1.0)
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
        "Its paths carry the answer: without their 2 facts its odds are 1.8 % of what they were, "
        "without others at random 61 %"
    )


@pytest.mark.parametrize(
    ("lost", "at_random", "beats_random", "verdict"),
    [
        (3.0, 0.1, True, "carry the answer"),
        (3.0, 2.5, True, "contribute"),  # others cost nearly as much
        (0.3, -0.1, True, "contribute"),
        (0.004, -0.001, True, "hardly matter"),
        (-0.5, -3.0, True, "hardly matter"),  # the answer does better without it
        (3.0, 0.1, False, "are no better than random"),
    ],
)
def test_a_verdict_tells_what_carries_an_answer_from_what_hardly_matters(
    lost: float, at_random: float, beats_random: bool, verdict: str
) -> None:
    assert verdict_on(lost, at_random, beats_random=beats_random) == verdict


@pytest.mark.parametrize(
    ("lost", "left"),
    [(0.0, "100.0 %"), (0.004, "99.6 %"), (1.0, "37 %"), (-1.0, "272 %"), (6.0, "0.2 %")],
)
def test_odds_left_are_exact_where_that_matters(lost: float, left: str) -> None:
    assert odds_left(lost) == left
    assert odds_left(-1e9).endswith("%")


def test_numbers_of_a_column_have_the_same_decimals() -> None:
    assert same_decimals([0.0214, 0.002, 0.00957]) == ["0.0214", "0.0020", "0.0096"]
    assert same_decimals([123.4, 7.0]) == ["123", "7"]
    assert same_decimals([0.0]) == ["0.000"]
    assert same_decimals([]) == []
