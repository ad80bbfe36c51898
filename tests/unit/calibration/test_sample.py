"""The calibration sample: which candidates, with which truth and weight."""

import numpy as np
import pytest
import torch

from knowformer.calibration import sample as sampling
from knowformer.calibration.sample import BEST, num_questions, sample_candidates
from tests.unit.calibration.conftest import NUM_ENTITIES, NUM_RELATIONS, World


def test_known_facts_are_no_candidates_and_weights_stand_for_all(world: World):
    rows = sample_candidates(world, world.split("test"), link="softmax", seed=0, queries=40)
    asked = torch.cat([world.train, world.test])
    heads = {(h, r) for h, r, _ in asked.tolist()}
    tails = {(t, r) for _, r, t in asked.tolist()}
    assert rows.weight[rows.place == 0].sum() == pytest.approx(len(heads) + len(tails))
    assert len(np.unique(rows.query)) == 80
    known = torch.cat([world.train, world.valid])
    pairs = 2 * NUM_RELATIONS * NUM_ENTITIES**2 - 2 * len(known)
    assert rows.weight.sum() == pytest.approx(pairs, rel=0.1)  # nearly every entity is asked
    assert rows.is_true.sum() == rows.is_true[rows.weight < 100].sum() > 0


def test_every_true_candidate_and_the_best_ones_are_taken_with_the_weight_of_their_query(
    world: World,
):
    split = world.split("valid")
    sample = sample_candidates(world, split, link="sigmoid", seed=0)
    asked = torch.cat([split.facts, split.facts[:, [2, 1, 0]] + torch.tensor([0, 2, 0])])
    assert sample.is_true.sum() == len(asked)  # there are fewer queries than the sample may have
    of_query = sample[sample.query == sample.query[0]]
    assert sorted(of_query.place[of_query.place < BEST]) == list(range(BEST))
    assert len(np.unique(of_query.weight[of_query.place < BEST])) == 1
    assert len(np.unique(of_query.competitors)) == 1
    assert sample.model_probability == pytest.approx(1 / (1 + np.exp(-sample.score)))


def test_the_same_seed_takes_the_same_candidates_and_another_one_others(world: World):
    split = world.split("test")
    first, again, other = (
        sample_candidates(world, split, link="softmax", seed=seed, queries=20) for seed in (0, 0, 1)
    )
    assert np.array_equal(first.score, again.score)
    assert not np.array_equal(first.score, other.score)


def test_a_sample_that_ends_early_still_stands_for_all_questions(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sampling, "MIN_QUERIES", 20)
    monkeypatch.setattr(sampling, "queries_at_once", lambda _: 8)
    split = world.split("test")
    whole = sample_candidates(world, split, link="softmax", seed=0)
    some = sample_candidates(
        world, split, link="softmax", seed=0, is_enough=lambda scored: scored >= 0
    )
    assert len(np.unique(some.query)) == 24  # the first batch after which there are enough
    asked = whole.weight[whole.place == 0].sum()
    assert some.weight[some.place == 0].sum() == pytest.approx(asked)
    assert np.array_equal(some.score, whole.score[whole.query < 24])
    assert len(np.unique(whole.query)) <= num_questions(split)
