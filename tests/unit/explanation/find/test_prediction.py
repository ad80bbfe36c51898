import math

import pytest
import torch

from knowformer.errors import DataError
from knowformer.explanation.find.prediction import NOT_SEEN, Prediction, find_competitors


def test_log_odds_are_the_score_against_that_of_all_competitors() -> None:
    competitors = torch.tensor([True, False, False, True])  # 1 is the answer, 2 is known
    prediction = Prediction(head=0, relation=0, answer=1, competitors=competitors)
    scores = torch.tensor([2.0, 3.0, 50.0, 1.0]).double()
    expected = 3.0 - math.log(math.exp(2.0) + math.exp(1.0))
    assert prediction.log_odds(scores).item() == pytest.approx(expected)
    assert prediction.log_odds(scores + 7.0).item() == pytest.approx(expected)


def test_within_a_part_of_the_graph_entities_go_by_their_places() -> None:
    competitors = torch.tensor([True, False, True, True, False, True])
    prediction = Prediction(head=3, relation=2, answer=4, competitors=competitors)
    seen = prediction.within(torch.tensor([1, 3, 4, 5]))
    assert (seen.head, seen.relation, seen.answer) == (1, 2, 2)
    assert seen.competitors.tolist() == [False, True, False, True]
    same = prediction.within(torch.arange(6))
    assert (same.head, same.answer, same.competitors.tolist()) == (3, 4, competitors.tolist())
    for entities in ([1, 3], [3, 5], [0, 3]):
        assert prediction.within(torch.tensor(entities)).answer == NOT_SEEN


def test_an_answer_that_is_not_seen_counts_with_the_lowest_score() -> None:
    competitors = torch.tensor([True, False, True])
    scores = torch.tensor([2.0, -1.0, 1.0]).double()
    prediction = Prediction(head=0, relation=0, answer=NOT_SEEN, competitors=competitors)
    assert prediction.score(scores).item() == -1.0
    expected = -1.0 - math.log(math.exp(2.0) + math.exp(1.0))
    assert prediction.log_odds(scores).item() == pytest.approx(expected)


def test_competitors_that_are_not_seen_count_with_the_lowest_score() -> None:
    none = torch.zeros(2, dtype=torch.bool)
    scores = torch.tensor([2.0, -1.0])
    assert Prediction(0, 0, 0, none).log_odds(scores).item() == 3.0
    assert Prediction(0, 0, NOT_SEEN, none).log_odds(scores).item() == 0.0


def test_competitors_are_the_candidates_that_are_not_known() -> None:
    known = torch.tensor([False, True, True, False])
    assert find_competitors(known, 1).tolist() == [True, False, False, True]
    assert find_competitors(known, 0).tolist() == [False, False, False, True]
    assert known.tolist() == [False, True, True, False]


def test_where_every_candidate_is_known_all_others_are_competitors() -> None:
    assert find_competitors(torch.ones(3, dtype=torch.bool), 1).tolist() == [True, False, True]
    assert find_competitors(torch.tensor([True, False, True]), 1).tolist() == [True, False, True]


def test_a_lone_entity_has_no_competitors() -> None:
    with pytest.raises(DataError, match="at least two entities"):
        find_competitors(torch.zeros(1, dtype=torch.bool), 0)
