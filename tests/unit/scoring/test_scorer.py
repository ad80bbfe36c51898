from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import QueryView
from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.scoring.scorer import SHARED_SIZE, Scorer
from knowformer.storage.triples_io import NamedTriple
from knowformer.views.extractor import ViewExtractor

CHAIN = [(f"e{i}", "r", f"e{i + 1}") for i in range(70)]
STAR = [("hub", "r", f"leaf{i}") for i in range(60)]
ODD = [("a", "r", "a"), ("a", "s", "b"), ("b", "r", "a"), ("c", "s", "c"), ("d", "r", "c")]


def model_for(graph: KnowledgeGraph, **settings: object) -> KnowFormer:
    small = {"hidden_dim": 16, "num_layers": 2, "num_query_key_hops": 1, **settings}
    model = KnowFormer(ModelConfig.model_validate(small), 2 * len(graph.relations))
    initialize(model, generator=torch.Generator().manual_seed(0))
    return model


def plain_scores(scorer: Scorer, heads: Tensor, relations: Tensor) -> Tensor:
    """One query after the other, nothing shared."""
    rows = [
        scorer.model(
            QueryView.whole(scorer.graph.adjacency.edges, heads[number : number + 1]),
            relations[number : number + 1],
            identity_noise=scorer.identity_noise,
        )
        for number in range(len(heads))
    ]
    return torch.stack(rows).detach()


@pytest.mark.parametrize("triples", [CHAIN, STAR, ODD], ids=["chain", "star", "odd"])
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("num_value_hops", [0, 1, 3])
def test_queries_of_one_relation_share_work_and_score_the_same_bits(
    triples: list[NamedTriple], preset: str, num_value_hops: int
) -> None:
    """The value stream starts from the head's neighbourhood; the rest is the same for all."""
    graph = KnowledgeGraph.from_triples(triples)
    model = model_for(graph, **{**PRESETS[preset], "num_value_hops": num_value_hops})
    assert model.is_batch_invariant
    scorer = Scorer(model, graph, seed=0, threads=1)
    heads = torch.tensor([0, len(graph.entities) - 1, 2, 0])
    relations = torch.ones_like(heads)
    scores = scorer.score(heads, relations).dense()
    assert torch.equal(scores, plain_scores(scorer, heads, relations))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"hidden_dim": 8},
        {"attention": False},
        {"query_stream": False},
        {"value_stream": False},
        {"num_query_key_hops": 0},
        {"similarity": "exponential"},
        {"similarity": "random_features", "num_random_features": 8},
    ],
    ids=str,
)
def test_scores_are_those_of_the_model_for_every_query(
    random_graph: Callable[..., KnowledgeGraph], settings: dict[str, object]
) -> None:
    """More queries of one relation than share work, several relations, in no order."""
    graph = random_graph(0, num_entities=50, num_facts=120)
    scorer = Scorer(model_for(graph, **settings), graph, seed=0, threads=2)
    draw = torch.Generator().manual_seed(0)
    count = 2 * SHARED_SIZE + 5
    heads = torch.randint(50, (count,), generator=draw)
    relations = torch.randint(6, (count,), generator=draw)
    relations[: SHARED_SIZE + 3] = 4
    order = torch.randperm(count, generator=draw)
    heads, relations = heads[order], relations[order]
    scores = scorer.score(heads, relations).dense()
    assert scores.dtype == torch.float32
    expected = plain_scores(scorer, heads, relations)
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [2, 3])
def test_a_single_query_divided_among_threads_has_the_same_bits(
    random_graph: Callable[..., KnowledgeGraph], threads: int
) -> None:
    graph = random_graph(0, num_entities=9000, num_facts=12_000)
    model = model_for(graph)
    query = torch.tensor([17]), torch.tensor([3])
    alone = Scorer(model, graph, seed=0, threads=1).score(*query)
    divided = Scorer(model, graph, seed=0, threads=threads).score(*query)
    assert torch.equal(divided.values, alone.values)


def test_noise_follows_seed_and_sample(family: KnowledgeGraph) -> None:
    model, query = model_for(family), (torch.tensor([0]), torch.tensor([1]))
    same, again, seeded, sampled = (
        Scorer(model, family, seed=seed, sample=sample).score(*query).values
        for seed, sample in ((0, 0), (0, 0), (1, 0), (0, 1))
    )
    assert torch.equal(same, again)
    assert not torch.equal(same, seeded)
    assert not torch.equal(same, sampled)


def test_no_queries_have_no_scores(family: KnowledgeGraph) -> None:
    none = torch.zeros(0, dtype=torch.long)
    scores = Scorer(model_for(family), family, seed=0).score(none, none)
    assert len(scores) == 0
    assert scores.dense().shape == (0, len(family.entities))


def test_scores_keep_no_gradients_and_leave_the_model_trainable(family: KnowledgeGraph) -> None:
    model = model_for(family)
    scorer = Scorer(model, family, seed=0)
    heads = torch.tensor([0, 1])
    assert not scorer.score(heads, heads).values.requires_grad
    view = QueryView.whole(family.adjacency.edges, heads)
    model(view, heads, identity_noise=scorer.identity_noise).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_in_a_view_an_entity_scores_as_on_a_graph_that_is_no_larger(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    graph = random_graph(0, num_entities=80, num_facts=120)
    model = model_for(graph, view_size=20)
    heads, relations = torch.arange(5), torch.tensor([3, 0, 3, 5, 1])
    scorer = Scorer(model, graph, seed=0, threads=2)
    scores = scorer.score(heads, relations)
    assert scores.entities is not None
    settings = model.config.view_of(80)
    assert settings is not None
    views = ViewExtractor(graph.adjacency, graph.entity_keys, settings).extract(heads, relations)
    assert torch.equal(scores.entities, views.entities)
    noise = scorer.identity_noise[:, views.entities]
    with torch.inference_mode():
        expected = model(views.view, relations, identity_noise=noise)
    torch.testing.assert_close(scores.values, expected, rtol=1e-4, atol=1e-5)


def test_in_views_too_neither_batch_nor_threads_change_a_bit(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    graph = random_graph(0, num_entities=300, num_facts=500)
    model = model_for(graph, view_size=60, noise_dim=0)
    heads = torch.arange(40)
    relations = heads % 6
    together = Scorer(model, graph, seed=0, threads=2).score(heads, relations)
    alone = Scorer(model, graph, seed=0, threads=1)
    values = [
        alone.score(*query).values for query in zip(heads.split(1), relations.split(1), strict=True)
    ]
    assert torch.equal(together.values, torch.cat(values))


def test_the_order_outside_of_views_is_there_on_request(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    graph = random_graph(0, num_entities=80, num_facts=120)
    scorer = Scorer(model_for(graph, view_size=10), graph, seed=0)
    heads, relations = torch.arange(20), torch.arange(20) % 6
    assert scorer.score(heads, relations).outside is None
    scores = scorer.score(heads, relations, outside=True)
    assert scores.outside is not None
    for query in range(20):
        seen, others = scores.entities_of(query), scores.outside.of_query(query)[0]
        assert len(torch.unique(torch.cat([seen, others]))) == len(seen) + len(others)


def test_a_view_as_large_as_the_graph_is_the_whole_graph(family: KnowledgeGraph) -> None:
    query = torch.tensor([0, 1]), torch.tensor([1, 2])
    whole = Scorer(model_for(family), family, seed=0).score(*query)
    large = Scorer(model_for(family, view_size=len(family.entities)), family, seed=0).score(*query)
    assert large.entities is None
    assert torch.equal(whole.values, large.values)
