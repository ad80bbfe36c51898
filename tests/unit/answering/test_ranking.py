"""Rankings in ids, and their cache, also when several threads use it."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from knowformer.answering.questions import Question
from knowformer.answering.ranking import (
    Candidate,
    Draw,
    Options,
    Ranking,
    RankingCache,
    build_ranking,
)
from knowformer.errors import ConfigError

COUNTS = {"num_candidates": 4, "num_known": 1}


def draw(scores: list[float], in_top: list[bool]) -> Draw:
    return Draw(np.array(scores), np.exp(np.array(scores)), np.array(in_top))


def test_candidates_without_a_score_are_left_out():
    known = np.array([False, True, False])
    ranking = build_ranking([2, 1, 0], [draw([-0.5, -1.0, -np.inf], [True] * 3)], known, **COUNTS)
    assert [c.id for c in ranking.candidates] == [2, 1]
    assert [c.known for c in ranking.candidates] == [False, True]
    assert ranking.candidates[0].probability == pytest.approx(np.exp(-0.5))
    assert ranking.candidates[0].spread is None
    assert (ranking.num_candidates, ranking.num_known) == (4, 1)


def test_several_draws_give_a_spread_and_the_first_one_the_score():
    draws = [draw([-1.0], [True]), draw([-3.0], [False])]
    (candidate,) = build_ranking([3], draws, np.array([False]), **COUNTS).candidates
    assert candidate.score == -1.0
    assert candidate.spread is not None
    assert candidate.spread.samples == 2
    assert candidate.spread.score_mean == -2.0
    assert candidate.spread.score_deviation == pytest.approx(np.sqrt(2.0))
    assert candidate.spread.top_k_share == 0.5


@pytest.mark.parametrize(("name", "what"), [("k", "answers"), ("samples", "samples")])
def test_numbers_that_are_not_positive_are_refused(name: str, what: str):
    with pytest.raises(ConfigError, match=f"positive number of {what}, got 0"):
        Options(**{name: 0})


def ranking_of(number: int, size: int = 1) -> Ranking:
    candidate = Candidate(number, score=0.0, probability=0.5, known=False, spread=None)
    return Ranking([candidate] * size, num_candidates=9, num_known=0)


def question(number: int) -> Question:
    return Question(number, 0, None)


def test_a_cache_knows_questions_by_their_options():
    cache = RankingCache()
    cache.add(Options(k=3), {question(1): ranking_of(1)})
    assert cache.get(Options(k=3), [question(1), question(2)]) == {question(1): ranking_of(1)}
    assert cache.get(Options(k=4), [question(1)]) == {}


def test_a_cache_holds_no_more_candidates_than_its_limit():
    cache, options = RankingCache(limit=10), Options()
    cache.add(options, {question(n): ranking_of(n, size=3) for n in range(3)})
    assert len(cache.get(options, map(question, range(3)))) == 3
    cache.add(options, {question(3): ranking_of(3, size=2)})  # no room: the old ones go
    assert list(cache.get(options, map(question, range(4)))) == [question(3)]
    cache.add(options, {question(4): ranking_of(4, size=11)})  # never has room
    assert list(cache.get(options, map(question, range(5)))) == [question(3)]


@pytest.mark.usefixtures("often_switched")
def test_a_cache_keeps_its_limit_when_threads_fill_it_at_once():
    cache, options = RankingCache(limit=50), Options()

    def fill(first: int) -> int:
        most = 0
        for start in range(first, first + 800, 40):
            asked = [question(number) for number in range(start, start + 40)]
            cache.add(options, {q: ranking_of(q.head or 0) for q in asked})
            most = max(most, len(cache._rankings))
            for one, ranking in cache.get(options, asked).items():
                assert ranking == ranking_of(one.head or 0)
        return most

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(fill, range(0, 80_000, 10_000))) <= 50


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)
