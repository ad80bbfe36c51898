import numpy as np
import pytest
import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import select_backend
from knowformer.model.config import ModelConfig
from knowformer.model.layer import KnowFormerLayer
from knowformer.model.streams import run_stream

WIDTH = 8
RELATIONS = torch.tensor([1, 1, 0])
HEADS = torch.tensor([0, 3, 3])


def build(graph: KnowledgeGraph, **settings: object) -> KnowFormerLayer:
    config = ModelConfig.model_validate({"hidden_dim": WIDTH, "num_heads": 2, **settings})
    layer = KnowFormerLayer(config, 2 * len(graph.relations))
    draw = torch.Generator().manual_seed(0)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=draw)
    return layer.double()


def run(
    layer: KnowFormerLayer,
    graph: KnowledgeGraph,
    *,
    states: torch.Tensor | None,
    dropout_seed: int | None = None,
) -> torch.Tensor:
    draw = torch.Generator().manual_seed(1)
    by_relation = torch.randn(2, WIDTH, generator=draw, dtype=torch.double)
    noise = torch.randn(len(graph.entities), 1, generator=draw, dtype=torch.double)
    generator = None if dropout_seed is None else np.random.default_rng(dropout_seed)
    return layer(
        states,
        layer.weights(noise),
        layer.relation_vectors(by_relation[RELATIONS]),
        HEADS,
        graph.adjacency.edges,
        query_key_states=None,
        value_states=None,
        dropout_generator=generator,
        backend=select_backend("reference"),
    )


def some_states(graph: KnowledgeGraph) -> torch.Tensor:
    draw = torch.Generator().manual_seed(2)
    return torch.randn(3, len(graph.entities), WIDTH, generator=draw, dtype=torch.double)


def zero_states(graph: KnowledgeGraph) -> torch.Tensor:
    return torch.zeros_like(some_states(graph))


@pytest.mark.parametrize("ablation", [{}, {"attention": False}, {"query_stream": False}])
def test_no_states_are_states_of_zero(family: KnowledgeGraph, ablation: dict[str, bool]) -> None:
    """The first layer skips work; the result is the plain one."""
    layer = build(family, **ablation)
    torch.testing.assert_close(
        run(layer, family, states=None), run(layer, family, states=zero_states(family))
    )


def test_without_attention_the_value_streams_output_takes_its_place(
    family: KnowledgeGraph,
) -> None:
    layer = build(family, attention=False)
    x, backend = some_states(family), select_backend("reference")
    draw = torch.Generator().manual_seed(1)
    by_relation = torch.randn(2, WIDTH, generator=draw, dtype=torch.double)
    vectors = layer.relation_vectors(by_relation[RELATIONS])
    values = run_stream(
        x, layer.value_stream.weights(), vectors.value, family.adjacency.edges,
        heads=HEADS, num_queries=3, backend=backend,
    )  # fmt: skip
    a = layer.attention_norm(x + values)
    expected = layer.output_norm(a + layer.contract(layer.expand(a).relu()))
    torch.testing.assert_close(run(layer, family, states=x), expected)


def test_without_attention_nothing_of_it_exists(family: KnowledgeGraph) -> None:
    names = {name.split(".")[0] for name, _ in build(family, attention=False).named_parameters()}
    assert names == {"value_stream", "expand", "contract", "attention_norm", "output_norm"}


@pytest.mark.parametrize("switch", ["attention", "query_stream", "value_stream"])
def test_each_part_makes_a_difference(family: KnowledgeGraph, switch: str) -> None:
    whole, less = build(family), build(family, **{switch: False})
    less.load_state_dict(
        {name: value for name, value in whole.state_dict().items() if name in less.state_dict()}
    )
    states = some_states(family)
    assert not torch.allclose(run(whole, family, states=states), run(less, family, states=states))


def test_without_the_value_stream_no_hop_carries_the_head_to_its_neighbours(
    family: KnowledgeGraph,
) -> None:
    result = run(build(family, value_stream=False, attention=False), family, states=None)
    for row, head in enumerate(HEADS.tolist()):
        others = torch.cat([result[row, :head], result[row, head + 1 :]])
        torch.testing.assert_close(others, others[:1].expand_as(others))
        assert not torch.allclose(result[row, head], others[0])


def test_nothing_is_dropped_without_a_generator_or_at_rate_zero(family: KnowledgeGraph) -> None:
    states = some_states(family)
    expected = run(build(family, dropout=0.0), family, states=states)
    assert torch.equal(run(build(family, dropout=0.5).train(), family, states=states), expected)
    kept = run(build(family, dropout=0.0), family, states=states, dropout_seed=3)
    assert torch.equal(kept, expected)


def test_dropout_depends_on_its_generator(family: KnowledgeGraph) -> None:
    layer, states = build(family, dropout=0.5), some_states(family)
    first = run(layer, family, states=states, dropout_seed=3)
    assert torch.equal(first, run(layer, family, states=states, dropout_seed=3))
    assert not torch.equal(first, run(layer, family, states=states, dropout_seed=4))


def test_random_features_are_the_same_in_every_model_and_stored_in_none(
    family: KnowledgeGraph,
) -> None:
    first, second = (build(family, similarity="random_features") for _ in range(2))
    assert first.features is not None
    assert second.features is not None
    assert torch.equal(first.features, second.features)
    assert "features" not in first.state_dict()
