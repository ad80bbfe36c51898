from typing import TypeVar

import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import select_backend
from knowformer.model.config import ModelConfig
from knowformer.model.streams import QueryKeyStream, ValueStream, run_stream

WIDTH = 4
Stream = TypeVar("Stream", bound=torch.nn.Module)

CHAIN = KnowledgeGraph.from_triples(
    [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d"), ("d", "r", "e")]
)


def drawn(module: Stream) -> Stream:
    draw = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=draw)
    return module.double()


def values_for(head: int, num_hops: int, *, value_stream: bool = True) -> torch.Tensor:
    config = ModelConfig(
        hidden_dim=WIDTH, num_value_hops=num_hops, value_stream=value_stream, num_heads=1
    )
    stream = drawn(ValueStream(config, 2))
    query_relation = torch.ones(1, WIDTH, dtype=torch.double)
    return run_stream(
        torch.zeros(1, 5, WIDTH, dtype=torch.double),
        stream.weights(),
        stream.vectors(query_relation),
        CHAIN.adjacency.edges,
        heads=torch.tensor([head]),
        num_queries=1,
        backend=select_backend("reference"),
    )[0]


def test_the_head_is_felt_as_far_as_there_are_hops() -> None:
    for num_hops in range(4):
        # With the head at the far end, the near end is too far away to feel it.
        near, far = values_for(0, num_hops), values_for(4, num_hops)
        differs = [not torch.allclose(near[i], far[i]) for i in range(5)]
        reached_from_either_end = [min(i, 4 - i) <= num_hops for i in range(5)]
        expected = [near_or_far and i != 2 for i, near_or_far in enumerate(reached_from_either_end)]
        assert [d for i, d in enumerate(differs) if i != 2] == [
            e for i, e in enumerate(expected) if i != 2
        ]


def test_the_ablation_without_hops_is_the_stream_with_none() -> None:
    assert torch.equal(values_for(1, 3, value_stream=False), values_for(1, 0))


def test_a_value_hop_has_relation_vectors_of_its_own_and_query_key_hops_share_them() -> None:
    config = ModelConfig(hidden_dim=WIDTH, num_heads=1, num_query_key_hops=2, num_value_hops=3)
    query_key, value = QueryKeyStream(config, 2), ValueStream(config, 2)
    assert sum("project.weight" in name for name, _ in query_key.named_parameters()) == 1
    assert sum("project.weight" in name for name, _ in value.named_parameters()) == 3
    assert sum("self_weight" in name for name, _ in query_key.named_parameters()) == 2
    assert sum("self_weight" in name for name, _ in value.named_parameters()) == 3


def test_noise_alone_tells_entities_apart_in_the_query_key_stream() -> None:
    config = ModelConfig(hidden_dim=WIDTH, num_heads=1, num_query_key_hops=0)
    stream = drawn(QueryKeyStream(config, 2))
    noise = torch.tensor([[0.5], [0.5], [1.0], [2.0], [-1.0]], dtype=torch.double)
    result = run_stream(
        torch.zeros(2, 5, WIDTH, dtype=torch.double),
        stream.weights(noise),
        (),
        CHAIN.adjacency.edges,
        heads=None,
        num_queries=2,
        backend=select_backend("reference"),
    )
    assert torch.equal(result[0], result[1])
    torch.testing.assert_close(result[0, 0], result[0, 1])
    assert not torch.allclose(result[0, 0], result[0, 2])
