"""Choosing the best of scored entities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.views.extracted import FOREMOST, Scored

FOUND = Scored(
    np.array([4, 2, 7, 0, 5, 1], dtype=np.int32), np.array([FOREMOST, 30, 20, 20, 0, 20])
)
RANKS = np.array([3, 5, 0, 0, 9, 0, 0, 4], dtype=np.int32)  # 0 before 7 before 1


@pytest.mark.parametrize(
    ("size", "members", "others"),
    [
        (1, [4], [2, 0, 7, 1]),
        (2, [2, 4], [0, 7, 1]),
        (3, [0, 2, 4], [7, 1]),
        (4, [0, 2, 4, 7], [1]),
        (5, [0, 1, 2, 4, 7], []),
        (6, [0, 1, 2, 4, 7], []),  # 5 has no score
        (9, [0, 1, 2, 4, 7], []),
    ],
)
def test_the_head_and_the_best_are_chosen_and_ties_go_by_name(
    size: int, members: list[int], others: list[int]
) -> None:
    chosen, rest = FOUND.choose(size, RANKS, outside=True)
    assert chosen.tolist() == members
    assert rest.entities.tolist() == others
    assert rest.scores.tolist() == [30 if entity == 2 else 20 for entity in others]
    again, nothing = FOUND.choose(size, RANKS, outside=False)
    assert again.tolist() == members
    assert len(nothing.entities) == len(nothing.scores) == 0


def test_where_too_few_have_a_score_fewer_are_chosen() -> None:
    found = Scored(np.arange(5, dtype=np.int32), np.array([3, 0, 0, 2, 0]))
    assert found.choose(3, np.arange(5, dtype=np.int32), outside=False)[0].tolist() == [0, 3]


def test_doubt_is_about_those_near_the_last_one_chosen() -> None:
    found = Scored(np.arange(6, dtype=np.int32), np.array([50, 40, 33, 30, 27, 10]))
    assert found.in_doubt(4, 2).tolist() == [False, False, False, True, False, False]
    assert found.in_doubt(4, 3).tolist() == [False, False, True, True, True, False]
    assert found.in_doubt(6, 5).tolist() == [False] * 6
    without_score = Scored(np.arange(3, dtype=np.int32), np.array([9, 0, 2]))
    assert without_score.in_doubt(3, 2).tolist() == [False, True, True]


@given(seed=st.integers(0, 10**6), size=st.integers(1, 12), missing=st.integers(0, 6))
def test_scores_need_to_be_complete_only_where_there_is_doubt(
    seed: int, size: int, missing: int
) -> None:
    draw = np.random.default_rng(seed)
    entities, ranks = np.arange(12, dtype=np.int32), draw.permutation(12).astype(np.int32)
    lacking = draw.integers(0, 12, 12)
    complete = lacking + draw.integers(0, missing + 1, 12)
    is_open = Scored(entities, lacking).in_doubt(size, missing)
    found = Scored(entities, np.where(is_open, complete, lacking))
    members, _ = found.choose(size, ranks, outside=False)
    expected, _ = Scored(entities, complete).choose(size, ranks, outside=False)
    assert members.tolist() == expected.tolist()
