"""Filtered ranks under three tie policies: by hand, and by what must always hold."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from knowformer.errors import KnowformerError
from knowformer.evaluation.ranks import TIE_POLICIES, Ranks, filtered_ranks
from knowformer.queries.scores import Scores
from knowformer.views.views import Outside


def rank_one(scores: list[float], tail: int, known: Sequence[int] = ()) -> Ranks:
    mask = torch.zeros(1, len(scores), dtype=torch.bool)
    mask[0, list(known)] = True
    return rank(torch.tensor([scores]), mask, torch.tensor([0]), torch.tensor([tail]))


def rank(
    table: torch.Tensor, known: torch.Tensor, queries: torch.Tensor, tails: torch.Tensor
) -> Ranks:
    """Ranks answers of queries that see every entity."""
    pairs = known.nonzero(as_tuple=True)
    return filtered_ranks(Scores.of_all(table), (pairs[0], pairs[1]), queries, tails)


def test_the_best_of_distinct_scores_has_rank_one_and_the_worst_the_last():
    scores = [0.1, 0.9, 0.5, 0.3]
    for tail, rank in [(1, 1.0), (2, 2.0), (3, 3.0), (0, 4.0)]:
        ranks = rank_one(scores, tail)
        assert [ranks.under(policy).item() for policy in TIE_POLICIES] == [rank] * 3


def test_ties_are_won_lost_or_shared_as_the_policy_says():
    # One candidate is better (3.0), two others tie with the answer (2.0), one is worse.
    ranks = rank_one([2.0, 3.0, 2.0, 1.0, 2.0], tail=2)
    assert ranks.optimistic.tolist() == [2.0]
    assert ranks.pessimistic.tolist() == [4.0]
    assert ranks.realistic.tolist() == [3.0]


def test_a_tie_with_one_other_gives_half_a_rank():
    assert rank_one([1.0, 1.0], tail=0).realistic.tolist() == [1.5]


def test_known_answers_neither_beat_nor_tie_the_asked_one():
    # Entities 0 and 1 are known too: 0 would beat the answer, 1 would tie with it.
    assert rank_one([5.0, 2.0, 2.0, 3.0, 1.0], tail=2, known=[0, 1, 2]).pessimistic.item() == 2.0
    # Without the filter both would count.
    assert rank_one([5.0, 2.0, 2.0, 3.0, 1.0], tail=2).pessimistic.item() == 4.0


def test_the_answer_itself_is_ranked_whether_or_not_it_is_known():
    scores = [5.0, 2.0, 2.0]
    with_itself, without = rank_one(scores, 2, known=[2]), rank_one(scores, 2)
    assert with_itself.optimistic.item() == without.optimistic.item() == 2.0
    assert with_itself.pessimistic.item() == without.pessimistic.item() == 3.0


def test_when_all_others_are_known_the_rank_is_one():
    ranks = rank_one([9.0, 1.0, 9.0], tail=1, known=[0, 1, 2])
    assert [ranks.under(policy).item() for policy in TIE_POLICIES] == [1.0, 1.0, 1.0]


def test_answers_of_one_query_are_ranked_apart_from_each_other():
    scores = torch.tensor([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
    known = torch.tensor([[True, False, True, False], [False, False, False, True]])
    rows, tails = torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3])
    ranks = rank(scores, known, rows, tails)
    # Entity 2 stands behind 1 alone: 0 is a known answer of the same query.
    assert ranks.optimistic.tolist() == [1.0, 2.0, 1.0]
    assert ranks.pessimistic.tolist() == [1.0, 2.0, 1.0]


def test_ranking_leaves_scores_and_filter_as_they_were():
    scores, known = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[True, False, True]])
    rank(scores, known, torch.tensor([0]), torch.tensor([0]))
    assert scores.tolist() == [[1.0, 2.0, 3.0]]
    assert known.tolist() == [[True, False, True]]


def test_ranks_are_selected_by_a_mask():
    optimistic, pessimistic = torch.tensor([[1.0, 2.0, 3.0], [1.0, 4.0, 9.0]]).double()
    ranks = Ranks(optimistic, pessimistic, torch.ones(3, dtype=torch.bool))
    chosen = ranks[torch.tensor([False, True, True])]
    assert chosen.realistic.tolist() == [3.0, 6.0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_scores_that_are_not_finite_are_refused(bad: float):
    scores = [1.0, bad, 2.0]
    with pytest.raises(KnowformerError, match="finite scores"):
        rank_one(scores, tail=0)


@st.composite
def ranking_tasks(draw: st.DrawFn) -> tuple[list[int], list[bool], int]:
    num_candidates = draw(st.integers(1, 12))
    few_values = st.integers(0, 3)  # so that ties are common
    scores = draw(st.lists(few_values, min_size=num_candidates, max_size=num_candidates))
    known = draw(st.lists(st.booleans(), min_size=num_candidates, max_size=num_candidates))
    return scores, known, draw(st.integers(0, num_candidates - 1))


@settings(max_examples=100)
@given(ranking_tasks())
def test_optimistic_is_at_most_realistic_is_at_most_pessimistic(
    task: tuple[list[int], list[bool], int],
):
    scores, known, tail = task
    ranks = rank_one([float(s) for s in scores], tail, [i for i, k in enumerate(known) if k])
    optimistic, realistic, pessimistic = (
        ranks.under(policy).item() for policy in ("optimistic", "realistic", "pessimistic")
    )
    assert 1.0 <= optimistic <= realistic <= pessimistic
    competitors = sum(not k for i, k in enumerate(known) if i != tail)
    assert pessimistic <= 1 + competitors


@settings(max_examples=100)
@given(ranking_tasks())
def test_ranks_equal_those_counted_one_candidate_at_a_time(
    task: tuple[list[int], list[bool], int],
):
    scores, known, tail = task
    ranks = rank_one([float(s) for s in scores], tail, [i for i, k in enumerate(known) if k])
    others = [s for i, s in enumerate(scores) if i != tail and not known[i]]
    assert ranks.optimistic.item() == 1 + sum(s > scores[tail] for s in others)
    assert ranks.pessimistic.item() == 1 + sum(s >= scores[tail] for s in others)


@settings(max_examples=100)
@given(st.integers(1, 40), st.floats(-5, 5, width=32))
def test_a_constant_scorer_has_the_realistic_rank_of_the_middle(num_candidates: int, score: float):
    ranks = rank_one([score] * num_candidates, tail=num_candidates // 2)
    assert ranks.realistic.item() == (num_candidates + 1) / 2
    assert ranks.optimistic.item() == 1.0
    assert ranks.pessimistic.item() == num_candidates


@settings(max_examples=100)
@given(ranking_tasks())
def test_a_constant_scorer_is_in_the_middle_of_what_the_filter_leaves(
    task: tuple[list[int], list[bool], int],
):
    _, known, tail = task
    ranks = rank_one([0.5] * len(known), tail, [i for i, k in enumerate(known) if k])
    left = 1 + sum(not k for i, k in enumerate(known) if i != tail)
    assert ranks.realistic.item() == (left + 1) / 2


# Three queries of a graph of six entities; each sees entities 1, 3 and 4.
RAGGED = Scores(
    values=torch.tensor([0.1, 0.9, 0.5] * 3),
    offsets=torch.tensor([0, 3, 6, 9]),
    num_entities=6,
    entities=torch.tensor([1, 3, 4] * 3),
)


def test_an_answer_inside_the_view_is_ranked_among_what_is_seen():
    known = (torch.tensor([1]), torch.tensor([3]))
    ranks = filtered_ranks(RAGGED, known, torch.tensor([0, 1]), torch.tensor([4, 4]))
    assert ranks.realistic.tolist() == [2.0, 1.0]


def test_an_answer_outside_the_view_ranks_below_it_tied_with_all_others_outside():
    # Entity 0 is asked for; 2 and 5 are outside too. The second query knows 5, the third 3.
    known = (torch.tensor([1, 2]), torch.tensor([5, 3]))
    ranks = filtered_ranks(RAGGED, known, torch.arange(3), torch.zeros(3, dtype=torch.long))
    assert ranks.optimistic.tolist() == [4.0, 4.0, 3.0]
    assert ranks.pessimistic.tolist() == [6.0, 5.0, 5.0]


# Outside come 5, then 0; the second query puts both level; 2 is not listed: below them.
ORDERED = replace(
    RAGGED,
    outside=Outside(
        offsets=torch.tensor([0, 2, 4, 4]),
        entities=torch.tensor([5, 0, 0, 5]),
        scores=torch.tensor([7, 2, 3, 3]),
    ),
)


@pytest.mark.parametrize(
    ("query", "tail", "known", "optimistic", "pessimistic"),
    [
        (0, 5, [], 4, 4),
        (0, 0, [], 5, 5),
        (0, 2, [], 6, 6),
        (0, 0, [5], 4, 4),
        (0, 2, [3, 5], 4, 4),
        (1, 0, [], 4, 5),
        (1, 0, [5], 4, 4),
        (2, 2, [], 4, 6),
        (2, 2, [0], 4, 5),
    ],
)
def test_answers_outside_the_view_follow_its_order(
    query: int, tail: int, known: list[int], optimistic: int, pessimistic: int
):
    answers = (torch.full((len(known),), query), torch.tensor(known, dtype=torch.long))
    ranks = filtered_ranks(ORDERED, answers, torch.tensor([query]), torch.tensor([tail]))
    assert (ranks.optimistic.item(), ranks.pessimistic.item()) == (optimistic, pessimistic)
