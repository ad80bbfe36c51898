import numpy as np
import pytest

from knowformer.calibration.relation_choice import COEFFICIENTS, RelationChoice, relation_shares


def test_shares_are_those_of_the_relations_that_are_allowed() -> None:
    scores = np.log([[1.0, 2.0, 1.0], [1.0, 3.0, 4.0]])
    allowed = np.array([[True, True, True], [True, True, False]])
    expected = [[0.25, 0.5, 0.25], [0.25, 0.75, 0.0]]
    assert relation_shares(scores, allowed) == pytest.approx(np.array(expected))
    assert relation_shares(scores, np.zeros_like(allowed)).sum() == 0.0


def test_scores_weigh_the_columns_and_kinds_leave_the_model_out() -> None:
    columns = np.arange(10.0).reshape(1, 2, 5)
    choice = RelationChoice(coefficients=dict(zip(COEFFICIENTS, (1, 2, 3, 4, 5), strict=True)))
    assert choice.scores(columns) == pytest.approx(columns @ np.array([1, 2, 3, 4, 5]))
    assert choice.of_kinds(columns) == pytest.approx(columns[..., :3] @ np.array([1, 2, 3]))
    assert RelationChoice().facts == 0
