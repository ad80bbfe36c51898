"""Sharing work among micro-batches changes how gradients are made, not what they are."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import QueryView
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.noise import identity_noise
from knowformer.model.run import run
from knowformer.system.workers import shared_workers
from knowformer.training.gradients import MicroBatch, accumulate_gradients

NUM_RELATIONS = 6
PERMUTATION = torch.tensor([2, 1, 0, 5, 4, 3])
ABLATIONS: list[dict[str, object]] = [
    {},
    {"attention": False},
    {"query_stream": False},
    {"value_stream": False},
    {"num_query_key_hops": 0},
    {"similarity": "random_features"},
    {"update_layers": 3, "update_norm": False, "noise_dim": 0},
]


@dataclass(frozen=True)
class Batch:
    """Queries, what they see, and an arbitrary gradient of their scores."""

    view: QueryView
    relations: Tensor
    graphs: list[KnowledgeGraph]

    @property
    def above(self) -> Tensor:
        draw = torch.Generator().manual_seed(1)
        return torch.randn(self.view.num_rows, generator=draw, dtype=torch.double)

    def noise(self, config: ModelConfig) -> Tensor:
        of_graphs = [identity_noise(config, graph.entity_keys, seed=0) for graph in self.graphs]
        return torch.cat(of_graphs, 1)


@pytest.fixture(scope="module")
def batches(random_graph: Callable[..., KnowledgeGraph]) -> dict[str, Batch]:
    """Queries that repeat a relation: on one graph, on three, and each on a graph of its own.

    One of the queries with graphs of their own is left out; its graph stays.
    """
    graph = random_graph(0, num_entities=7, num_facts=20)
    whole = QueryView.whole(graph.adjacency.edges, torch.tensor([0, 1, 2, 3, 1]))
    graphs = [random_graph(seed, num_entities=size) for seed, size in ((1, 9), (2, 1), (3, 5))]
    heads = [torch.tensor([0, 8, 4]), torch.tensor([0]), torch.tensor([2])]
    ragged = QueryView.join(
        [
            QueryView.whole(graph.adjacency.edges, of_graph)
            for graph, of_graph in zip(graphs, heads, strict=True)
        ]
    )
    own = [random_graph(seed, num_entities=size) for seed, size in ((1, 9), (2, 1), (3, 5), (4, 7))]
    apart = QueryView.join(
        [QueryView.whole(graph.adjacency.edges, torch.tensor([0])) for graph in own]
    ).select(torch.tensor([0, 2, 3]))
    return {
        "apart": Batch(apart, torch.tensor([4, 4, 0]), own),
        "whole": Batch(whole, torch.tensor([1, 1, 0, 3, 1]), [graph]),
        "ragged": Batch(ragged, torch.tensor([4, 4, 0, 4, 4]), graphs),
    }


def build(*, backend: str = "reference", **settings: object) -> KnowFormer:
    config = ModelConfig.model_validate({"hidden_dim": 16, "num_layers": 2, **settings})
    model = KnowFormer(config, NUM_RELATIONS, backend=backend)
    initialize(model, generator=torch.Generator().manual_seed(0))
    return model


def accumulated(
    model: KnowFormer, batch: Batch, *, size: int, threads: int, permutation: Tensor | None = None
) -> float:
    above = batch.above.to(model.score_last.bias.dtype)

    def loss(part: MicroBatch) -> Tensor:
        scores = run(part.weights, part.view, part.vectors, model.backend, first=part.first_states)
        rows = slice(int(batch.view.offsets[part.first]), int(batch.view.offsets[part.last]))
        assert len(part.view) == part.last - part.first
        return (scores * above[rows]).sum()

    return accumulate_gradients(
        model, batch.view, batch.relations, batch.noise(model.config), loss,
        size=size, workers=shared_workers(threads), permutation=permutation,
    )  # fmt: skip


def plain(model: KnowFormer, batch: Batch, permutation: Tensor | None = None) -> float:
    """Autograd through the whole batch at once."""
    vectors = model.encoder(batch.relations, permutation=permutation)
    weights = model.pack(batch.noise(model.config))
    loss = (run(weights, batch.view, vectors, model.backend) * batch.above).sum()
    loss.backward()
    return loss.item()


def gradients(model: KnowFormer) -> dict[str, Tensor]:
    """Takes the gradients of all weights off the model."""
    taken: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        taken[name] = parameter.grad
    model.zero_grad()
    return taken


def assert_close(ours: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(ours[name], value, msg=lambda text, name=name: name + text)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("ablation", ABLATIONS, ids=str)
@pytest.mark.parametrize("kind", ["whole", "ragged", "apart"])
def test_micro_batches_add_up_to_the_plain_gradient(
    batches: dict[str, Batch], kind: str, size: int, ablation: dict[str, object]
) -> None:
    model, batch = build(**ablation).double(), batches[kind]
    loss = plain(model, batch)
    expected = gradients(model)
    assert accumulated(model, batch, size=size, threads=2) == pytest.approx(loss)
    assert_close(gradients(model), expected)


@pytest.mark.parametrize("kind", ["whole", "ragged", "apart"])
@pytest.mark.parametrize("size", [2, 5])
def test_permuted_relations_have_the_plain_gradient_too(
    batches: dict[str, Batch], kind: str, size: int
) -> None:
    model, batch = build().double(), batches[kind]
    unpermuted = plain(model, batch)
    gradients(model)
    loss = plain(model, batch, PERMUTATION)
    expected = gradients(model)
    assert loss != pytest.approx(unpermuted)
    result = accumulated(model, batch, size=size, threads=2, permutation=PERMUTATION)
    assert result == pytest.approx(loss)
    assert_close(gradients(model), expected)


@pytest.mark.parametrize("kind", ["whole", "ragged", "apart"])
@pytest.mark.parametrize("backend", ["reference", "auto"])
def test_the_number_of_threads_does_not_change_a_bit(
    batches: dict[str, Batch], kind: str, backend: str
) -> None:
    model, batch = build(backend=backend), batches[kind]
    for permutation in (None, PERMUTATION):
        loss = accumulated(model, batch, size=1, threads=1, permutation=permutation)
        expected = gradients(model)
        for threads in (2, 3):
            other = accumulated(model, batch, size=1, threads=threads, permutation=permutation)
            assert other == loss
            for name, gradient in gradients(model).items():
                assert torch.equal(gradient, expected[name]), name


def test_gradients_are_added_to_those_that_are_there(batches: dict[str, Batch]) -> None:
    model, batch = build().double(), batches["whole"]
    accumulated(model, batch, size=2, threads=1)
    once = gradients(model)
    for _ in range(2):
        accumulated(model, batch, size=2, threads=1)
    assert_close(gradients(model), {name: 2 * gradient for name, gradient in once.items()})
