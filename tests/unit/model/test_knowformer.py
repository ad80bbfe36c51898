from itertools import combinations

import numpy as np
import pytest
import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.noise import identity_noise

SWITCHES: list[dict[str, object]] = [
    {},
    {"attention": False},
    {"query_stream": False},
    {"value_stream": False},
    {"similarity": "exponential"},
    {"similarity": "random_features"},
    {"num_query_key_hops": 0},
    {"num_value_hops": 0},
]


def model_for(graph: KnowledgeGraph, seed: int = 0, **settings: object) -> KnowFormer:
    small = {"hidden_dim": 8, "num_layers": 2, "num_heads": 2, **settings}
    model = KnowFormer(ModelConfig.model_validate(small), 2 * len(graph.relations))
    initialize(model, generator=torch.Generator().manual_seed(seed))
    return model


def scores_of(
    model: KnowFormer, graph: KnowledgeGraph, dropout_generator: np.random.Generator | None = None
) -> torch.Tensor:
    num_relations = 2 * len(graph.relations)
    return model(
        graph.adjacency.edges,
        torch.arange(num_relations) % len(graph.entities),
        torch.arange(num_relations),
        identity_noise=identity_noise(model.config, graph.entity_keys, seed=0),
        dropout_generator=dropout_generator,
    )


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_parameter_receives_a_gradient(
    family: KnowledgeGraph, preset: str, switches: dict[str, object]
) -> None:
    model = model_for(family, **(PRESETS[preset] | switches))
    scores = scores_of(model, family)
    scores.backward(torch.randn(scores.shape, generator=torch.Generator().manual_seed(1)))
    silent = {
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    }
    # Without a query stream the first layer's queries and keys are maps of states still at zero.
    allowed = {"layers.0.to_query_key.weight"} if "query_stream" in switches else set()
    assert silent == allowed


def test_layers_start_with_different_weights(family: KnowledgeGraph) -> None:
    model = model_for(family, num_layers=3)
    for first, second in combinations(model.layers, 2):
        for (name, a), b in zip(first.named_parameters(), second.parameters(), strict=True):
            assert torch.equal(a, b) == ("norm" in name), name


def test_weights_follow_the_generator_and_leave_nothing_uninitialised(
    family: KnowledgeGraph,
) -> None:
    first, second, other = (model_for(family, seed) for seed in (0, 0, 1))
    for (name, a), b, c in zip(
        first.named_parameters(), second.parameters(), other.parameters(), strict=True
    ):
        assert torch.equal(a, b), name
        assert torch.equal(a, c) == ("norm" in name), name
        assert a.abs().max() < 10


def test_scores_have_a_row_per_query_and_a_column_per_entity(family: KnowledgeGraph) -> None:
    scores = scores_of(model_for(family), family)
    assert scores.shape == (2 * len(family.relations), len(family.entities))
    assert torch.isfinite(scores).all()


def test_dropout_acts_only_with_a_generator(family: KnowledgeGraph) -> None:
    model = model_for(family, dropout=0.5).train()
    plain = scores_of(model, family)
    assert torch.equal(scores_of(model.eval(), family), plain)

    def dropped(seed: int) -> torch.Tensor:
        return scores_of(model.train(), family, np.random.default_rng(seed))

    assert not torch.equal(dropped(0), plain)
    assert torch.equal(dropped(0), dropped(0))
    assert not torch.equal(dropped(0), dropped(1))


def test_global_random_state_plays_no_part(family: KnowledgeGraph) -> None:
    torch.manual_seed(1)
    first = scores_of(model_for(family), family, np.random.default_rng(0))
    torch.manual_seed(2)
    second = scores_of(model_for(family), family, np.random.default_rng(0))
    assert torch.equal(first, second)


def test_a_model_scores_graphs_it_was_not_built_for(family: KnowledgeGraph) -> None:
    model = model_for(family)
    other = KnowledgeGraph.from_triples(
        [("x", "mother_of", "y"), ("y", "married_to", "z")], relations=family.relations
    )
    assert scores_of(model, other).shape == (2 * len(family.relations), 3)


def test_noise_for_another_number_of_layers_is_refused(family: KnowledgeGraph) -> None:
    model = model_for(family)
    noise = identity_noise(ModelConfig(num_layers=3), family.entity_keys, seed=0)
    with pytest.raises(ValueError, match="zip"):
        model(
            family.adjacency.edges,
            torch.tensor([0]),
            torch.tensor([0]),
            identity_noise=noise,
        )


CHAIN = [(f"e{i}", "r", f"e{i + 1}") for i in range(70)]
STAR = [("hub", "r", f"leaf{i}") for i in range(60)]
ODD = [("a", "r", "a"), ("a", "s", "b"), ("b", "r", "a"), ("c", "s", "c"), ("d", "r", "c")]


@pytest.mark.parametrize("triples", [CHAIN, STAR, ODD], ids=["chain", "star", "odd"])
@pytest.mark.parametrize("preset", ["released", "paper"])
@pytest.mark.parametrize("num_value_hops", [0, 1, 3])
def test_queries_of_one_relation_share_work_and_score_the_same_bits(
    triples: list[tuple[str, str, str]], preset: str, num_value_hops: int
) -> None:
    """The value stream starts from the head's neighbourhood; the rest is the same for all."""
    graph = KnowledgeGraph.from_triples(triples)
    settings = {**PRESETS[preset], "hidden_dim": 16, "num_value_hops": num_value_hops}
    model = KnowFormer(ModelConfig.model_validate(settings), 2 * len(graph.relations))
    initialize(model, generator=torch.Generator().manual_seed(0))
    noise, edges = identity_noise(model.config, graph.entity_keys, seed=0), graph.adjacency.edges
    heads = torch.tensor([0, len(graph.entities) - 1, 2, 0])
    with torch.inference_mode():
        plain = model(edges, heads, torch.ones_like(heads), identity_noise=noise)
        weights = model.weights(noise)
        vectors = model.steady_relation_vectors(torch.tensor([1]))
    for size in (1, 3):
        shared = model.score_heads(edges, heads, vectors, weights, size=size)
        assert torch.equal(shared, plain)
