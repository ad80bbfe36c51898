"""Metrics from ranks, by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from knowformer.evaluation.metrics import rank_metrics


def test_metrics_of_four_ranks_are_those_worked_out_by_hand():
    metrics = rank_metrics(torch.tensor([1.0, 2.0, 4.0, 20.0], dtype=torch.double))
    assert metrics == {
        "mrr": pytest.approx((1 + 1 / 2 + 1 / 4 + 1 / 20) / 4, abs=1e-15),
        "mr": 27 / 4,
        "hits@1": 1 / 4,
        "hits@3": 2 / 4,
        "hits@10": 3 / 4,
    }


def test_half_ranks_count_as_the_numbers_they_are():
    # Realistic ranks: 1/1.5 enters the MRR (not the mean of 1/1 and 1/2); 1.5 is no hit at 1.
    metrics = rank_metrics(torch.tensor([1.5, 3.5], dtype=torch.double))
    assert metrics["mrr"] == pytest.approx((1 / 1.5 + 1 / 3.5) / 2, abs=1e-15)
    assert metrics["hits@1"] == 0.0
    assert metrics["hits@3"] == 0.5


def test_a_rank_of_k_is_a_hit_at_k():
    metrics = rank_metrics(torch.tensor([1.0, 3.0, 10.0], dtype=torch.double))
    assert (metrics["hits@1"], metrics["hits@3"], metrics["hits@10"]) == (1 / 3, 2 / 3, 1.0)


def test_no_ranks_give_zeros_for_every_metric():
    none = rank_metrics(torch.zeros(0, dtype=torch.double))
    assert none == {"mrr": 0.0, "mr": 0.0, "hits@1": 0.0, "hits@3": 0.0, "hits@10": 0.0}


def test_sums_are_taken_in_double_precision():
    # In float32 the mean of these ranks would be off by far more than this.
    ranks = torch.tensor([16_777_216.0] + [1.0] * 999, dtype=torch.float32)
    assert rank_metrics(ranks)["mr"] == pytest.approx((16_777_216 + 999) / 1000, rel=1e-12)


@given(st.lists(st.integers(2, 400), min_size=1, max_size=50))
def test_metrics_keep_to_their_bounds_and_order(doubled: list[int]):
    ranks = torch.tensor(doubled, dtype=torch.double) / 2
    metrics = rank_metrics(ranks)
    assert 0 <= metrics["hits@1"] <= metrics["hits@3"] <= metrics["hits@10"] <= 1
    assert metrics["hits@1"] <= metrics["mrr"] + 1e-12
    assert 1 / metrics["mr"] <= metrics["mrr"] + 1e-12  # harmonic mean is below the arithmetic one
