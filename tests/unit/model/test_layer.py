import pytest
import torch

from knowformer.model.config import ModelConfig
from knowformer.model.layer import KnowFormerLayer

WIDTH = 8


def build(**settings: object) -> KnowFormerLayer:
    config = ModelConfig.model_validate({"hidden_dim": WIDTH, "num_heads": 2, **settings})
    layer = KnowFormerLayer(config)
    draw = torch.Generator().manual_seed(0)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=draw)
    return layer


def test_queries_and_keys_are_the_halves_of_one_map() -> None:
    layer = build()
    packed, both = layer.pack(torch.zeros(5, 1)).attend, layer.to_query_key
    assert both is not None
    states = torch.randn(3, WIDTH, generator=torch.Generator().manual_seed(1))
    q, k = both(states).split(WIDTH, 1)
    torch.testing.assert_close(states @ packed.matrices[0] + packed.vectors[0], q)
    torch.testing.assert_close(states @ packed.matrices[1] + packed.vectors[1], k)


def test_norms_and_feed_forward_are_packed_in_their_order() -> None:
    layer = build()
    packed = layer.pack(torch.zeros(5, 1)).attend
    assert torch.equal(
        packed.matrices[2:], torch.stack([layer.expand.weight.T, layer.contract.weight.T])
    )
    vectors = [
        layer.attention_norm.weight, layer.attention_norm.bias, layer.expand.bias,
        layer.contract.bias, layer.output_norm.weight, layer.output_norm.bias,
    ]  # fmt: skip
    assert torch.equal(packed.vectors[2:], torch.stack(vectors))


def test_without_attention_nothing_of_it_exists() -> None:
    layer = build(attention=False)
    names = {name.split(".")[0] for name, _ in layer.named_parameters()}
    assert names == {"value_stream", "expand", "contract", "attention_norm", "output_norm"}
    packed = layer.pack(torch.zeros(5, 1))
    assert packed.query_key is None
    assert len(packed.attend.matrices) == 2
    assert len(packed.attend.vectors) == 6


@pytest.mark.parametrize(
    ("switch", "gone"),
    [("query_stream", "query_key_stream"), ("value_stream", "value_stream.hops")],
)
def test_an_ablation_leaves_out_what_it_does_not_use(switch: str, gone: str) -> None:
    def names(layer: KnowFormerLayer) -> set[str]:
        return {name for name, _ in layer.named_parameters()}

    left_out = names(build()) - names(build(**{switch: False}))
    assert left_out
    assert all(name.startswith(gone) for name in left_out)


def test_noise_takes_the_precision_of_the_weights() -> None:
    packed = build().double().pack(torch.ones(5, 1))
    assert packed.query_key is not None
    assert packed.query_key.start.extra.dtype == torch.double


def test_random_features_are_the_same_in_every_model_and_stored_in_none() -> None:
    first, second = (build(similarity="random_features") for _ in range(2))
    assert first.features is not None
    assert second.features is not None
    assert torch.equal(first.features, second.features)
    assert "features" not in first.state_dict()
    assert first.pack(torch.zeros(5, 1)).attend.features is first.features
