import numpy as np

from knowformer.evaluation.baselines.tally import Tally


def test_numbers_above_and_equal_are_counted_within_a_group() -> None:
    tally = Tally(np.array([2, 0, 0, 0]), np.array([9.0, 1.0, 3.0, 3.0]))
    groups, values = np.array([0, 0, 0, 1, 2]), np.array([1.0, 2.0, 3.0, 3.0, 8.0])
    above, equal = tally.count(groups, values)
    assert above.tolist() == [2, 2, 0, 0, 1]
    assert equal.tolist() == [1, 0, 2, 0, 0]


def test_nothing_is_above_in_an_empty_tally() -> None:
    empty = Tally(np.empty(0, dtype=np.int64), np.empty(0))
    above, equal = empty.count(np.array([0, 5]), np.array([1.0, 0.0]))
    assert above.tolist() == equal.tolist() == [0, 0]
