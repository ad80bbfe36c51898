"""Features of queries, by hand."""

import math

import numpy as np
import pytest
import torch

from knowformer.calibration.features import logmeanexp_of_competitors, query_features
from knowformer.queries.scores import Scores

TABLE = torch.tensor([[0.0, math.log(3.0), 50.0], [1.0, 1.0, 1.0]])
SCORES = Scores.of_all(TABLE)
SEEN = torch.tensor([[False, False, True], [True, True, True]])


def test_competitors_are_the_candidates_that_are_not_seen_as_facts():
    expected = [math.log((1 + 3) / 2), 1.0]  # where all are seen, all count
    assert logmeanexp_of_competitors(SCORES, SEEN).tolist() == pytest.approx(expected)


def test_competitors_do_not_depend_on_how_many_there_are():
    twice = Scores.of_all(torch.cat([TABLE[:, :2]] * 2, 1))
    once = Scores.of_all(TABLE[:, :2])
    expected = logmeanexp_of_competitors(once, torch.zeros(2, 2).bool())
    assert torch.allclose(logmeanexp_of_competitors(twice, torch.zeros(2, 4).bool()), expected)


def test_a_query_that_sees_a_part_of_the_graph_is_compared_with_that_part():
    seen_part = Scores(
        values=torch.tensor([0.0, math.log(3.0), 1.0]),
        offsets=torch.tensor([0, 2, 3]),
        num_entities=5,
        entities=torch.tensor([1, 4, 2]),
    )
    features = query_features(seen_part, torch.zeros(2, 2).bool(), torch.tensor([0, 1]))
    assert features.competitors.tolist() == pytest.approx([math.log(2.0), 1.0])
    assert features.num_candidates.tolist() == [2.0, 1.0]


def test_features_count_and_may_be_taken_again_and_again():
    features = query_features(SCORES, SEEN, torch.tensor([7, 4]))
    assert features.num_seen.tolist() == [1, 3]
    assert features.num_candidates.tolist() == [2.0, 1.0]
    assert features.log_total == pytest.approx(TABLE.double().logsumexp(1).numpy())
    taken = features.take(np.array([1, 1, 0]))
    assert taken.relations.tolist() == [4, 4, 7]
    assert taken.num_seen.tolist() == [3, 3, 1]
