import math

import pytest
import torch

from knowformer.kernels.interface import select_backend
from knowformer.model.attention import EntityAttention
from knowformer.model.config import ModelConfig, Similarity


def attention(similarity: Similarity, *, num_random_features: int = 64) -> EntityAttention:
    """The same weights whatever the similarity."""
    config = ModelConfig(
        hidden_dim=8,
        num_heads=2,
        similarity=similarity,
        num_random_features=num_random_features,
    )
    module = EntityAttention(config)
    draw = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=draw)
    return module.double()


def states(seed: int, num_entities: int = 40) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(2, num_entities, 8, generator=draw, dtype=torch.double)


def test_queries_and_keys_are_unit_vectors_per_head() -> None:
    q, k = attention("linear").query_key(states(0))
    assert q.shape == k.shape == (2, 2, 40, 4)
    torch.testing.assert_close(q.norm(dim=-1), torch.ones(2, 2, 40, dtype=torch.double))
    torch.testing.assert_close(k.norm(dim=-1), torch.ones(2, 2, 40, dtype=torch.double))
    assert not torch.allclose(q, k)


def test_linear_similarity_is_near_the_exponential_one_and_never_negative() -> None:
    """Theorem 1: they differ by at most e / 2, as q and k are unit vectors."""
    q, k = attention("linear").query_key(100 * states(0))
    product = q @ k.mT
    assert product.min() < -0.9
    assert product.max() > 0.9
    assert ((1 + product) - torch.exp(product)).abs().max() <= math.e / 2
    assert (1 + product).min() >= 0


def attend(module: EntityAttention) -> torch.Tensor:
    return module(states(0), states(1), backend=select_backend("reference"))


def test_random_features_estimate_the_exponential_similarity() -> None:
    exact = attend(attention("exponential"))

    def error(num_random_features: int) -> float:
        estimate = attend(attention("random_features", num_random_features=num_random_features))
        return (estimate - exact).abs().max().item()

    # The error of a mean falls with the square root of their number.
    assert error(20_000) < 0.04
    assert error(64) > 10 * error(20_000)


@pytest.mark.parametrize("similarity", ["linear", "exponential", "random_features"])
def test_values_that_agree_everywhere_stay_as_they_are(similarity: Similarity) -> None:
    """Each output is a mean of values, weighted by what is never negative."""
    value = states(2)[:, :1].expand(-1, 40, -1)
    out = attention(similarity)(states(0), value, backend=select_backend("reference"))
    torch.testing.assert_close(out, value)


@pytest.mark.parametrize("similarity", ["linear", "exponential", "random_features"])
def test_heads_do_not_mix(similarity: Similarity) -> None:
    module = attention(similarity)
    values = states(1)
    changed = values.clone()
    changed[..., 4:] += 1.0  # the second head's half
    backend = select_backend("reference")
    before = module(states(0), values, backend=backend)
    after = module(states(0), changed, backend=backend)
    torch.testing.assert_close(after[..., :4], before[..., :4])
    assert not torch.isclose(after[..., 4:], before[..., 4:]).any()


def test_random_features_are_the_same_in_every_model_and_stored_in_none() -> None:
    first, second = attention("random_features"), attention("random_features")
    assert first.features is not None
    assert second.features is not None
    assert torch.equal(first.features, second.features)
    assert set(first.state_dict()) == {"to_query_key.weight", "to_query_key.bias"}
