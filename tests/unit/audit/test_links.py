import numpy as np
import pytest

from knowformer.audit.links import are_links_misleading, num_linked, num_linked_twice

FACTS = np.array([[0, 0, 1], [1, 1, 0], [0, 0, 2], [2, 0, 2]])


def test_links_count_in_either_direction_and_by_any_relation() -> None:
    assert num_linked_twice(FACTS, 4) == 2
    asked = np.array([[2, 5, 0], [1, 0, 2], [2, 1, 2], [3, 0, 0]])
    assert num_linked(asked, FACTS, 4) == 2


@pytest.mark.parametrize(
    ("in_training", "held_out", "is_misleading"),
    [(0.4, 0.0, True), (0.4, 0.039, True), (0.4, 0.041, False), (0.05, 0.0, False)],
)
def test_links_mislead_where_held_out_facts_lack_them(
    in_training: float, held_out: float, is_misleading: bool
) -> None:
    assert are_links_misleading(in_training, held_out) == is_misleading
