import pytest
import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import select_backend
from knowformer.model.config import ModelConfig
from knowformer.model.layer import FeedForward, KnowFormerLayer

WIDTH = 8


def small(**settings: object) -> ModelConfig:
    return ModelConfig.model_validate({"hidden_dim": WIDTH, "num_heads": 2, **settings})


def drawn(module: torch.nn.Module) -> torch.nn.Module:
    draw = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=draw)
    return module.double()


def inputs(graph: KnowledgeGraph) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    num_entities = len(graph.entities)
    return {
        "entity_states": torch.randn(2, num_entities, WIDTH, generator=draw, dtype=torch.double),
        "query_relation": torch.randn(2, WIDTH, generator=draw, dtype=torch.double),
        "heads": torch.tensor([0, 3]),
        "identity_noise": torch.randn(num_entities, 1, generator=draw, dtype=torch.double),
    }


def run(layer: torch.nn.Module, graph: KnowledgeGraph) -> torch.Tensor:
    return layer(
        **inputs(graph),
        edges=graph.adjacency.edges,
        dropout_generator=None,
        backend=select_backend("reference"),
    )


def num_all_relations(graph: KnowledgeGraph) -> int:
    return 2 * len(graph.relations)


def test_without_attention_the_value_streams_output_takes_its_place(
    family: KnowledgeGraph,
) -> None:
    layer = drawn(KnowFormerLayer(small(attention=False), num_all_relations(family)))
    assert isinstance(layer, KnowFormerLayer)
    given = inputs(family)
    x = given["entity_states"]
    values = layer.value_stream(
        x,
        given["query_relation"],
        given["heads"],
        family.adjacency.edges,
        backend=select_backend("reference"),
    )
    a = layer.attention_norm(x + values)
    expected = layer.output_norm(a + layer.feed_forward(a, dropout_generator=None))
    assert torch.equal(run(layer, family), expected)


def test_without_attention_noise_is_not_used_at_all(family: KnowledgeGraph) -> None:
    layer = drawn(KnowFormerLayer(small(attention=False), num_all_relations(family)))
    names = {name.split(".")[0] for name, _ in layer.named_parameters()}
    assert names == {"value_stream", "feed_forward", "attention_norm", "output_norm"}


def test_without_the_query_stream_queries_and_keys_come_from_the_states(
    family: KnowledgeGraph,
) -> None:
    layer = drawn(KnowFormerLayer(small(query_stream=False), num_all_relations(family)))
    assert isinstance(layer, KnowFormerLayer)
    assert layer.attention is not None
    given, backend = inputs(family), select_backend("reference")
    x = given["entity_states"]
    edges = family.adjacency.edges
    values = layer.value_stream(x, given["query_relation"], given["heads"], edges, backend=backend)
    a = layer.attention_norm(x + layer.attention(x, values, backend=backend))
    expected = layer.output_norm(a + layer.feed_forward(a, dropout_generator=None))
    assert torch.equal(run(layer, family), expected)


@pytest.mark.parametrize("switch", ["attention", "query_stream", "value_stream"])
def test_each_part_makes_a_difference(family: KnowledgeGraph, switch: str) -> None:
    whole = drawn(KnowFormerLayer(small(), num_all_relations(family)))
    less = KnowFormerLayer(small(**{switch: False}), num_all_relations(family)).double()
    less.load_state_dict(
        {name: value for name, value in whole.state_dict().items() if name in less.state_dict()}
    )
    assert not torch.allclose(run(whole, family), run(less, family))


def test_without_the_value_stream_no_hop_carries_the_head_to_its_neighbours(
    family: KnowledgeGraph,
) -> None:
    config = small(value_stream=False, attention=False)
    layer = drawn(KnowFormerLayer(config, num_all_relations(family)))
    given = inputs(family)
    states = torch.zeros_like(given["entity_states"])
    result = layer(
        **(given | {"entity_states": states}),
        edges=family.adjacency.edges,
        dropout_generator=None,
        backend=select_backend("reference"),
    )
    for row, head in enumerate(given["heads"].tolist()):
        others = torch.cat([result[row, :head], result[row, head + 1 :]])
        torch.testing.assert_close(others, others[:1].expand_as(others))
        assert not torch.allclose(result[row, head], others[0])


def feed_forward(dropout: float) -> FeedForward:
    module = drawn(FeedForward(small(dropout=dropout)))
    assert isinstance(module, FeedForward)
    return module


def test_nothing_is_dropped_without_a_generator_even_in_training_mode() -> None:
    states = torch.randn(3, 50, WIDTH, dtype=torch.double)
    with_dropout, without = feed_forward(0.5).train(), feed_forward(0.0)
    expected = without(states, dropout_generator=None)
    assert torch.equal(with_dropout(states, dropout_generator=None), expected)
    generator = torch.Generator().manual_seed(0)
    assert torch.equal(without(states, dropout_generator=generator), expected)


def test_dropout_depends_on_its_generator_and_keeps_the_mean() -> None:
    module = feed_forward(0.5)
    states = torch.randn(1, 1, WIDTH, dtype=torch.double).expand(100, 200, WIDTH)

    def dropped(seed: int) -> torch.Tensor:
        return module(states, dropout_generator=torch.Generator().manual_seed(seed))

    assert torch.equal(dropped(3), dropped(3))
    assert not torch.equal(dropped(3), dropped(4))
    expected = module(states[:1, :1], dropout_generator=None)[0, 0]
    spread = dropped(3).std((0, 1)) / (100 * 200) ** 0.5
    assert ((dropped(3).mean((0, 1)) - expected).abs() < 6 * spread + 1e-9).all()
