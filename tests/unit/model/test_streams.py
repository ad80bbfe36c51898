from typing import TypeVar

import pytest
import torch
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import QueryView, select_backend
from knowformer.model.config import ModelConfig
from knowformer.model.streams import QueryKeyStream, ValueStream

WIDTH = 4
Stream = TypeVar("Stream", bound=torch.nn.Module)

CHAIN = KnowledgeGraph.from_triples(
    [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d"), ("d", "r", "e")]
).adjacency.edges
BACKEND = select_backend("reference")


def config_of(**settings: object) -> ModelConfig:
    return ModelConfig.model_validate({"hidden_dim": WIDTH, "num_heads": 1, **settings})


def drawn(module: Stream) -> Stream:
    draw = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=draw)
    return module.double()


def normal(*shape: int) -> Tensor:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(shape, generator=draw, dtype=torch.double)


def values_for(head: int, num_hops: int, *, value_stream: bool = True) -> Tensor:
    weights = drawn(
        ValueStream(config_of(num_value_hops=num_hops, value_stream=value_stream))
    ).pack()
    vectors = [torch.ones(1, 2, WIDTH, dtype=torch.double)] * len(weights.hops)
    return BACKEND.stream(None, weights, vectors, QueryView.whole(CHAIN, torch.tensor([head])))


@pytest.mark.parametrize("num_hops", range(4))
def test_the_head_is_felt_as_far_as_there_are_hops(num_hops: int) -> None:
    # With the head at the far end, the near end is too far away to feel it. In the middle both are
    # felt alike.
    near, far = values_for(0, num_hops), values_for(4, num_hops)
    for entity in (0, 1, 3, 4):
        is_reached = min(entity, 4 - entity) <= num_hops
        assert torch.allclose(near[entity], far[entity]) != is_reached, entity


def test_the_ablation_without_hops_is_the_stream_with_none() -> None:
    assert torch.equal(values_for(1, 3, value_stream=False), values_for(1, 0))


def test_streams_have_as_many_hops_as_they_are_told() -> None:
    config = config_of(num_query_key_hops=2, num_value_hops=3)
    noise = torch.zeros(5, 1)
    assert len(QueryKeyStream(config).pack(noise).hops) == 2
    assert len(ValueStream(config).pack().hops) == 3


def test_noise_alone_tells_entities_apart_in_the_query_key_stream() -> None:
    stream = drawn(QueryKeyStream(config_of(num_query_key_hops=0)))
    noise = torch.tensor([[0.5], [0.5], [1.0], [2.0], [-1.0]], dtype=torch.double)
    view = QueryView.whole(CHAIN, torch.tensor([0, 3]))
    first, second = BACKEND.stream(None, stream.pack(noise), [], view).split(5)
    assert torch.equal(first, second)
    torch.testing.assert_close(first[0], first[1])
    assert not torch.allclose(first[0], first[2])


@pytest.mark.parametrize("with_states", [False, True])
def test_a_stream_starts_from_two_maps_of_states_and_what_tells_entities_apart(
    with_states: bool,
) -> None:
    """The first map is packed in two pieces; together they are the map of both, side by side."""
    config = config_of(num_query_key_hops=0, num_value_hops=0, noise_dim=3)
    states, noise = normal(5, WIDTH) * with_states, normal(5, 3)
    view = QueryView.whole(CHAIN, torch.tensor([2]))
    given = states if with_states else None
    query_key = drawn(QueryKeyStream(config))
    expected = query_key.second(query_key.first(torch.cat([states, noise], 1)).relu())
    torch.testing.assert_close(BACKEND.stream(given, query_key.pack(noise), [], view), expected)
    value, mark = drawn(ValueStream(config)), torch.zeros_like(states)
    mark[2] = 1.0
    expected = value.second(value.first(torch.cat([states, mark], 1)).relu())
    torch.testing.assert_close(BACKEND.stream(given, value.pack(), [], view), expected)
