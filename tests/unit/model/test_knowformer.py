from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import QueryView
from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize, ordered_parameters
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
    model: KnowFormer, graph: KnowledgeGraph, dropout: np.random.Generator | None = None
) -> Tensor:
    num_relations = 2 * len(graph.relations)
    heads = torch.arange(num_relations) % len(graph.entities)
    return model(
        QueryView.whole(graph.adjacency.edges, heads),
        torch.arange(num_relations),
        identity_noise=identity_noise(model.config, graph.entity_keys, seed=0),
        dropout=dropout,
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


def test_every_entity_that_a_query_sees_has_a_score(family: KnowledgeGraph) -> None:
    scores = scores_of(model_for(family), family)
    assert scores.shape == (2 * len(family.relations) * len(family.entities),)
    assert torch.isfinite(scores).all()


def test_dropout_acts_only_with_a_generator(family: KnowledgeGraph) -> None:
    model = model_for(family, dropout=0.5).train()
    plain = scores_of(model, family)
    assert torch.equal(scores_of(model.eval(), family), plain)

    def dropped(seed: int) -> Tensor:
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
    assert scores_of(model, other).shape == (2 * len(family.relations) * 3,)


def test_noise_for_another_number_of_layers_is_refused(family: KnowledgeGraph) -> None:
    model = model_for(family)
    noise = identity_noise(ModelConfig(num_layers=3), family.entity_keys, seed=0)
    with pytest.raises(ValueError, match="zip"):
        model(
            QueryView.whole(family.adjacency.edges, torch.tensor([0])),
            torch.tensor([0]),
            identity_noise=noise,
        )


def test_parameters_come_in_the_order_in_which_they_are_drawn(family: KnowledgeGraph) -> None:
    for switches in SWITCHES:
        model = model_for(family, **switches)
        ordered = ordered_parameters(model)
        assert len(ordered) == len(set(ordered))
        assert set(ordered) == set(model.parameters())
    assert ordered[0] is model.encoder.query_relations.weight


def test_an_ablation_draws_the_weights_that_are_left_as_before(family: KnowledgeGraph) -> None:
    """Layers follow one another: what the first is left with does not depend on the last."""
    short, long = model_for(family, num_layers=1), model_for(family, num_layers=3)
    of_long = long.layers[0].state_dict()
    for name, value in short.layers[0].state_dict().items():
        assert torch.equal(of_long[name], value), name


# Where version 0.1 kept what the relation encoder has now, in a model of one layer.
OLD_NAMES = {
    "encoder.query_relations": "query_relations",
    "encoder.layers.0.query_key": "layers.0.query_key_stream.relation_vectors.project",
    "encoder.layers.0.value.0": "layers.0.value_stream.relation_vectors.0.project",
    "encoder.layers.0.value.1": "layers.0.value_stream.relation_vectors.1.project",
}


def old_name(name: str) -> str:
    module, _, kind = name.rpartition(".")
    return f"{OLD_NAMES.get(module, module)}.{kind}"


def test_weights_of_version_0_1_load_under_their_new_names(family: KnowledgeGraph) -> None:
    old, model = (model_for(family, seed, num_layers=1, num_value_hops=2) for seed in (0, 1))
    state = old.state_dict()
    stored = {old_name(name): value for name, value in state.items()}
    assert not any(name.startswith("encoder.") for name in stored)
    names = list(stored)
    model.load_state_dict(stored)
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert list(stored) == names  # what was read from a file is left as it was
    del stored["query_relations.weight"]
    with pytest.raises(RuntimeError, match=r"Missing key.*encoder\.query_relations\.weight"):
        model.load_state_dict(stored)
