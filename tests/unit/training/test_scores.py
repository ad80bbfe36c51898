"""Scores with gradients: what training computes, by a call of one's own."""

from collections.abc import Callable

import pytest
import torch

from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.query import QueryBatch
from knowformer.scoring.scorer import Scorer
from knowformer.system.workers import shared_workers
from knowformer.training.config import RunConfig, TrainingConfig
from knowformer.training.losses import cross_entropy_loss
from knowformer.training.optimizer import build_optimizer
from knowformer.training.sampling.epochs import TrainingGraph
from knowformer.training.scores import score_queries
from knowformer.training.step import TrainingStep

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=2)


@pytest.fixture
def graph(random_graph: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    return random_graph(1)


def model_of(graph: KnowledgeGraph, view_size: int = 0) -> KnowFormer:
    config = SMALL.model_copy(update={"view_size": view_size})
    return KnowFormer.initialized(config, graph.relations, seed=3)


def batch_of(graph: KnowledgeGraph, number: int = 4) -> QueryBatch:
    """Some facts of the graph, asked both ways; relations side by side, as training has them."""
    facts = with_inverse_facts(graph.facts[:number], len(graph.relations))
    heads, relations, tails = facts[torch.argsort(facts[:, 1], stable=True)].unbind(1)
    return QueryBatch(heads, relations, torch.arange(len(facts)), tails)


@pytest.mark.parametrize("view_size", [0, 5], ids=["whole graph", "views"])
def test_with_nothing_hidden_scores_are_those_of_inference(
    graph: KnowledgeGraph, view_size: int
) -> None:
    model, batch = model_of(graph, view_size), batch_of(graph)
    expected = Scorer(model, graph, seed=7, threads=1).score(batch.heads, batch.relations)
    scores = score_queries(model, graph, batch, seed=7)
    torch.testing.assert_close(scores.dense(), expected.dense())
    assert scores.values.requires_grad


@pytest.mark.parametrize("view_size", [0, 5], ids=["whole graph", "views"])
def test_hidden_facts_might_as_well_not_be_there(graph: KnowledgeGraph, view_size: int) -> None:
    model, batch = model_of(graph, view_size), batch_of(graph, 1)
    without = KnowledgeGraph(graph.entities, graph.relations, graph.facts[1:])
    hidden = score_queries(model, graph, batch, hide="facts").dense()
    torch.testing.assert_close(hidden, score_queries(model, without, batch).dense())
    assert not torch.equal(hidden, score_queries(model, graph, batch).dense())


def test_the_gradients_are_those_of_a_training_step(graph: KnowledgeGraph) -> None:
    """Noise, dropout and hidden facts included."""
    model, batch = model_of(graph), batch_of(graph)
    config = RunConfig(model=model.config, training=TrainingConfig(batch_size=64), seed=5)
    whole = TrainingGraph(
        graph.adjacency, graph.entity_keys, graph.facts, targets="one", batch_size=64
    )
    optimizer = build_optimizer(model, config.training)
    step = TrainingStep(model, optimizer, config, shared_workers(1), batch_size=64)
    expected_loss = step.differentiate(step.see(whole, batch, 9), step=9)
    expected = {name: weight.grad.clone() for name, weight in model.named_parameters()}  # pyright: ignore[reportOptionalMemberAccess]
    optimizer.zero_grad()
    scores = score_queries(model, graph, batch, hide="facts", seed=5, step=9)
    known = scores.mask(*whole.known.lookup(batch.heads, batch.relations))
    loss = cross_entropy_loss(
        scores.table, known, batch.rows, batch.tails, num_facts=len(batch.tails)
    )
    loss.backward()
    assert loss.item() == pytest.approx(expected_loss, rel=1e-5)
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, expected[name], msg=name)
