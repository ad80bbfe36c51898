import math

import pytest
import torch
from torch.nn.functional import normalize

from knowformer.kernels._reference import (
    dense_attention,
    feature_attention,
    linear_attention,
    positive_features,
)


def drawn(seed: int, num_entities: int = 40) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(2, 2, num_entities, 4, generator=draw, dtype=torch.double)


def unit(seed: int) -> torch.Tensor:
    return normalize(drawn(seed), dim=-1)


def directions(count: int) -> torch.Tensor:
    return torch.randn(2, 4, count, generator=torch.Generator().manual_seed(9))


def test_linear_similarity_is_near_the_exponential_one_and_never_negative() -> None:
    """Theorem 1: they differ by at most e / 2, as q and k are unit vectors."""
    product = unit(0) @ unit(1).mT
    assert product.min() < -0.9
    assert product.max() > 0.9
    assert ((1 + product) - torch.exp(product)).abs().max() <= math.e / 2
    assert (1 + product).min() >= 0


def test_random_features_estimate_the_exponential_similarity() -> None:
    q, k, v = unit(0), unit(1), drawn(2)
    exact = dense_attention(q, k, v)

    def error(count: int) -> float:
        features = directions(count)
        estimate = feature_attention(
            positive_features(q, features), positive_features(k, features), v
        )
        return (estimate - exact).abs().max().item()

    # The error of a mean falls with the square root of their number.
    assert error(20_000) < 0.04
    assert error(64) > 5 * error(20_000)


def random_feature_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    features = directions(16)
    return feature_attention(positive_features(q, features), positive_features(k, features), v)


each_attention = pytest.mark.parametrize(
    "attention", [linear_attention, dense_attention, random_feature_attention]
)


@each_attention
def test_values_that_agree_everywhere_stay_as_they_are(attention) -> None:
    """Each output is a mean of values, weighted by what is never negative."""
    value = drawn(2)[:, :, :1].expand(-1, -1, 40, -1)
    torch.testing.assert_close(attention(unit(0), unit(1), value), value)


@each_attention
def test_heads_do_not_mix(attention) -> None:
    values = drawn(2)
    changed = values.clone()
    changed[:, 1] += 1.0
    before, after = attention(unit(0), unit(1), values), attention(unit(0), unit(1), changed)
    torch.testing.assert_close(after[:, 0], before[:, 0])
    assert not torch.isclose(after[:, 1], before[:, 1]).any()
