"""Sharing work among the slices of a batch changes how gradients are made, not what they are."""

import pytest
import torch
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import Edges
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.noise import identity_noise
from knowformer.model.weights import ModelWeights, SharedStates
from knowformer.queries.query import QueryBatch
from knowformer.system.workers import shared_workers
from knowformer.training.gradients import accumulate_gradients

HEADS = torch.tensor([0, 1, 2, 3, 1])
RELATIONS = torch.tensor([1, 1, 0, 3, 1])


def build(graph: KnowledgeGraph, **settings: object) -> KnowFormer:
    config = ModelConfig.model_validate({"hidden_dim": 16, "num_layers": 2, **settings})
    model = KnowFormer(config, 2 * len(graph.relations), backend="reference")
    initialize(model, generator=torch.Generator().manual_seed(0))
    return model.double()


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(
    "ablation",
    [
        {},
        {"attention": False},
        {"query_stream": False},
        {"value_stream": False},
        {"num_query_key_hops": 0},
        {"similarity": "random_features"},
    ],
)
def test_slices_add_up_to_the_plain_gradient(
    family: KnowledgeGraph, size: int, ablation: dict[str, object]
) -> None:
    model, edges = build(family, **ablation), family.adjacency.edges
    noise = identity_noise(model.config, family.entity_keys, seed=0)
    above = torch.randn(
        len(HEADS), len(family.entities), generator=torch.Generator().manual_seed(1)
    ).double()
    (model(edges, HEADS, RELATIONS, identity_noise=noise) * above).sum().backward()
    expected = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    batch = QueryBatch(heads=HEADS, relations=RELATIONS, rows=torch.arange(len(HEADS)), tails=HEADS)

    def loss(
        part: QueryBatch, seen: Edges, weights: ModelWeights, shared: SharedStates, number: int
    ) -> Tensor:
        scores = model.score_entities(seen, part.heads, weights, shared)
        return (scores * above[number * size : number * size + len(part)]).sum()

    accumulate_gradients(model, batch, edges, noise, loss, size=size, workers=shared_workers(2))
    for (name, parameter), gradient in zip(model.named_parameters(), expected, strict=True):
        assert gradient is not None
        torch.testing.assert_close(
            parameter.grad, gradient, msg=lambda text, name=name: name + text
        )
