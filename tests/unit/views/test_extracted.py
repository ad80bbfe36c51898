"""Choosing the best of scored entities."""

import numpy as np
import pytest

from knowformer.views.extracted import Scored

FOUND = Scored(
    np.array([4, 2, 7, 0, 5, 1], dtype=np.int32), np.array([1, 30, 20, 20, 0, 20], dtype=np.int64)
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
