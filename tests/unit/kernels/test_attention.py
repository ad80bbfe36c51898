import math
from functools import partial

import pytest
import torch
from torch.nn.functional import normalize

from knowformer.kernels._attention import SIMILARITIES, attention
from knowformer.kernels.interface import Similarity


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
    exact = attention(q, k, v, "exponential")

    def error(count: int) -> float:
        estimate = attention(q, k, v, "random_features", directions=directions(count))
        return (estimate - exact).abs().max().item()

    # The error of a mean falls with the square root of their number.
    assert error(20_000) < 0.04
    assert error(64) > 5 * error(20_000)


each_similarity = pytest.mark.parametrize("similarity", SIMILARITIES)


@each_similarity
def test_sums_are_those_over_every_similarity_by_itself(similarity: Similarity) -> None:
    """The form that is linear in the entities, and the one that has them all."""
    q, k, v, features = unit(0), unit(1), drawn(2), directions(16)
    attended = drawn(3)[..., :1].abs()
    form = SIMILARITIES[similarity]
    total, mass = form.sums(q, k, v, attended, features)
    kappa = form.kappa(q, k, features) * attended.mT
    torch.testing.assert_close(total, kappa @ v)
    torch.testing.assert_close(mass, kappa.sum(-1, keepdim=True))


@each_similarity
def test_values_that_agree_everywhere_stay_as_they_are(similarity: Similarity) -> None:
    """Each output is a mean of values, weighted by what is never negative."""
    value = drawn(2)[:, :, :1].expand(-1, -1, 40, -1)
    result = attention(unit(0), unit(1), value, similarity, directions=directions(16))
    torch.testing.assert_close(result, value)


@each_similarity
def test_heads_do_not_mix(similarity: Similarity) -> None:
    values = drawn(2)
    changed = values.clone()
    changed[:, 1] += 1.0
    gather = partial(attention, unit(0), unit(1), similarity=similarity, directions=directions(16))
    before, after = gather(v=values), gather(v=changed)
    torch.testing.assert_close(after[:, 0], before[:, 0])
    assert not torch.isclose(after[:, 1], before[:, 1]).any()
