"""Views against their definition: what is inside, what is hidden, what makes no difference."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from knowformer.graph.inverse import inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.views.extractor import ViewExtractor
from knowformer.views.queries import HiddenFacts, HiddenTargets, Hide
from knowformer.views.settings import ViewSettings
from knowformer.views.views import Views
from tests.unit.views.asking import ask, queries, same_edges, without_hidden

GraphBuilder = Callable[..., KnowledgeGraph]
SEEDS = st.integers(0, 10**6)
SIZES = st.integers(1, 14)  # the graphs have twelve entities


def extractor(graph: KnowledgeGraph, size: int, **settings: Any) -> ViewExtractor:
    chosen = ViewSettings(size=size, **settings)
    return ViewExtractor(graph.adjacency, graph.entity_keys, chosen)


def members(views: Views) -> list[list[int]]:
    bounds, entities = views.view.offsets.tolist(), views.entities.tolist()
    return [entities[start:stop] for start, stop in pairwise(bounds)]


def graph_of(*facts: tuple[str, str, str], more: Iterable[str] = ()) -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(list(facts), more_entities=more)


def one(graph: KnowledgeGraph, head: str, relation: str) -> tuple[Tensor, Tensor]:
    return torch.tensor([graph.entities.id(head)]), torch.tensor([graph.relations.id(relation)])


def names(graph: KnowledgeGraph, views: Views) -> set[str]:
    return {graph.entities.names[entity] for entity in views.entities.tolist()}


def same(one: Views, other: Views) -> bool:
    return (
        same_edges(one.view.edges, other.view.edges)
        and torch.equal(one.view.offsets, other.view.offsets)
        and torch.equal(one.view.starts, other.view.starts)
        and torch.equal(one.view.heads, other.view.heads)
        and torch.equal(one.entities, other.entities)
    )


@pytest.mark.parametrize("hide", [None, "facts", "links"])
@given(seed=SEEDS, size=SIZES)
def test_a_view_has_the_head_and_at_most_k_entities(
    random_graph: GraphBuilder, hide: Hide | None, seed: int, size: int
) -> None:
    graph = random_graph(seed)
    heads, relations, hidden = ask(graph, seed, hide)
    views = extractor(graph, size).extract(heads, relations, hidden=hidden)
    places = (views.view.offsets[:-1] + views.view.heads).tolist()
    assert views.entities[places].tolist() == heads.tolist()
    for own in members(views):
        assert len(own) <= size
        assert own == sorted(set(own))


@pytest.mark.parametrize("hide", ["facts", "links"])
@given(seed=SEEDS, size=SIZES)
def test_what_is_hidden_leaves_no_trace(
    random_graph: GraphBuilder, hide: Hide, seed: int, size: int
) -> None:
    graph = random_graph(seed, num_entities=8, num_facts=40)
    heads, relations, hidden = ask(graph, seed, hide)
    found = extractor(graph, size).extract(heads, relations, hidden=hidden, outside=True)
    for number, query in enumerate(queries(graph, (heads, relations, hidden))):
        bare = extractor(without_hidden(graph, query, hide), size)
        row = slice(number, number + 1)
        expected = bare.extract(heads[row], relations[row], outside=True)
        start, stop = found.view.offsets[number : number + 2].tolist()
        assert found.entities[start:stop].tolist() == expected.entities.tolist()
        edges = found.view.edges.subgraph(start, stop - start)
        assert same_edges(edges, expected.view.edges)
        assert found.outside is not None
        assert expected.outside is not None
        start, stop = found.outside.offsets[number : number + 2].tolist()
        assert found.outside.entities[start:stop].tolist() == expected.outside.entities.tolist()
        assert found.outside.scores[start:stop].tolist() == expected.outside.scores.tolist()


@given(seed=SEEDS, size=SIZES)
def test_renumbered_entities_have_the_same_views(
    random_graph: GraphBuilder, seed: int, size: int
) -> None:
    graph = random_graph(seed)
    heads, relations, _ = ask(graph, seed, None)
    new = torch.randperm(len(graph.entities), generator=torch.Generator().manual_seed(seed))
    facts = torch.stack([new[graph.facts[:, 0]], graph.facts[:, 1], new[graph.facts[:, 2]]], 1)
    names = [graph.entities.names[old] for old in new.argsort().tolist()]
    renamed = KnowledgeGraph(Vocabulary(names, kind="entity"), graph.relations, facts)
    views = extractor(graph, size).extract(heads, relations, outside=True)
    others = extractor(renamed, size).extract(new[heads], relations, outside=True)
    assert [sorted(new[own].tolist()) for own in members(views)] == members(others)
    assert views.outside is not None
    assert others.outside is not None
    assert new[views.outside.entities].tolist() == others.outside.entities.tolist()
    assert views.outside.scores.tolist() == others.outside.scores.tolist()


@given(seed=SEEDS)
def test_a_view_as_large_as_the_graph_is_the_graph(random_graph: GraphBuilder, seed: int) -> None:
    graph = random_graph(seed)
    heads, relations, hidden = ask(graph, seed, "facts")
    assert hidden is not None
    nothing = HiddenTargets(hidden.rows[:0], hidden.targets[:0], "facts")
    views = extractor(graph, 12).extract(heads, relations)
    assert views.view.is_whole
    assert views.view.edges is graph.adjacency.edges
    assert members(views) == [list(range(12))] * len(heads)
    for number in range(len(heads)):
        row = slice(number, number + 1)
        own = extractor(graph, 12).extract(heads[row], relations[row], hidden=nothing)
        assert same_edges(own.view.edges, graph.adjacency.edges)


@pytest.mark.parametrize("hide", [None, "facts", "links"])
def test_a_query_has_the_same_view_in_any_batch_at_any_time(
    random_graph: GraphBuilder, hide: Hide | None
) -> None:
    graph = random_graph(5, num_entities=60, num_facts=150)
    heads, relations, hidden = ask(graph, 5, hide, count=20)
    made = extractor(graph, 20)
    views = made.extract(heads, relations, hidden=hidden)
    assert same(made.extract(heads, relations, hidden=hidden), views)
    for number in range(len(heads)):
        mine = None
        if hidden is not None:
            own = hidden.rows == number
            mine = HiddenTargets(hidden.rows[own] * 0, hidden.targets[own], hidden.mode)
        row = slice(number, number + 1)
        alone = made.extract(heads[row], relations[row], hidden=mine)
        start, stop = views.view.offsets[number : number + 2].tolist()
        assert alone.entities.tolist() == views.entities[start:stop].tolist()
        assert same_edges(alone.view.edges, views.view.edges.subgraph(start, stop - start))


def test_threads_change_nothing(random_graph: GraphBuilder) -> None:
    graph = random_graph(7, num_entities=200, num_facts=900)
    heads, relations, hidden = ask(graph, 7, "links", count=60)
    alone = extractor(graph, 50).extract(heads, relations, hidden=hidden)
    with ThreadPoolExecutor(3) as pool:
        shared = ViewExtractor(
            graph.adjacency,
            graph.entity_keys,
            ViewSettings(size=50),
            parallel_map=lambda function, items: list(pool.map(function, items)),
        )
        for _ in range(3):
            assert same(shared.extract(heads, relations, hidden=hidden), alone)


def test_no_queries_have_no_views(family: KnowledgeGraph) -> None:
    none = torch.empty(0, dtype=torch.long)
    views = extractor(family, 3).extract(none, none, outside=True)
    assert len(views.view) == 0
    assert len(views.entities) == 0
    assert views.outside is not None
    assert views.outside.offsets.tolist() == [0]


def test_a_view_of_one_entity_is_the_head_with_its_loops() -> None:
    graph = graph_of(("a", "likes", "a"), ("a", "likes", "b"))
    views = extractor(graph, 1).extract(*one(graph, "a", "likes"))
    assert names(graph, views) == {"a"}
    assert views.view.edges.relation.tolist() == [0, 1]


def test_an_isolated_head_sees_itself_and_the_tails_of_its_relation(family: KnowledgeGraph) -> None:
    views = extractor(family, 3).extract(*one(family, "zoe", "mother_of"))
    mothers_children = names(family, views) - {"zoe"}
    assert len(mothers_children) == 2
    assert mothers_children < {"ann", "bob", "cid"}
    alone = extractor(family, 3, prior_weight=0.0).extract(*one(family, "zoe", "mother_of"))
    assert names(family, alone) == {"zoe"}


@pytest.mark.parametrize("hide", ["facts", "links"])
def test_a_head_whose_facts_are_all_hidden_sees_what_an_isolated_one_would(hide: Hide) -> None:
    facts = [("a", "likes", "b"), ("c", "likes", "d"), ("d", "knows", "e")]
    graph = graph_of(*facts)
    target = torch.tensor([graph.entities.id("b")])
    hidden = HiddenTargets(torch.tensor([0]), target, hide)
    views = extractor(graph, 4).extract(*one(graph, "a", "likes"), hidden=hidden)
    assert names(graph, views) == {"a", "d"}
    assert len(views.view.edges.sender) == 0


def test_facts_and_links_differ_by_the_other_edges_of_a_pair() -> None:
    graph = graph_of(
        ("a", "likes", "b"), ("a", "knows", "b"), ("b", "knows", "a"), ("c", "is", "d")
    )
    hidden = {
        hide: HiddenTargets(torch.tensor([0]), torch.tensor([1]), hide)
        for hide in ("facts", "links")
    }
    asked = one(graph, "a", "likes")
    seen = {hide: extractor(graph, 3).extract(*asked, hidden=hidden[hide]) for hide in hidden}
    assert names(graph, seen["facts"]) == {"a", "b"}
    assert len(seen["facts"].view.edges.sender) == 4
    assert names(graph, seen["links"]) == {"a"}


@pytest.mark.parametrize("seed", range(4))
def test_listed_facts_are_hidden_as_if_they_never_were(
    random_graph: GraphBuilder, seed: int
) -> None:
    graph = random_graph(seed, num_entities=60, num_facts=150)
    heads, relations, _ = ask(graph, seed, None)
    draw = torch.Generator().manual_seed(seed)
    is_hidden = torch.rand(len(graph.facts), generator=draw) < 0.2
    facts = graph.facts[is_hidden]
    facts[::2] = inverse_facts(facts[::2], len(graph.relations))  # given either way
    left = KnowledgeGraph(graph.entities, graph.relations, graph.facts[~is_hidden])
    found = extractor(graph, 12).extract(heads, relations, hidden=HiddenFacts(facts), outside=True)
    expected = extractor(left, 12).extract(heads, relations, outside=True)
    assert torch.equal(found.entities, expected.entities)
    assert same_edges(found.view.edges, expected.view.edges)
    assert found.outside is not None
    assert expected.outside is not None
    assert torch.equal(found.outside.entities, expected.outside.entities)
    assert torch.equal(found.outside.scores, expected.outside.scores)


def test_the_prior_brings_in_entities_of_the_right_kind() -> None:
    liked = [(f"p{number}", "likes", "cake") for number in range(5)]
    graph = graph_of(("a", "knows", "b"), ("b", "knows", "c"), *liked, ("x", "likes", "soup"))
    asked = one(graph, "a", "likes")
    assert names(graph, extractor(graph, 3).extract(*asked)) == {"a", "b", "cake"}
    near = extractor(graph, 3, prior_weight=0.0).extract(*asked)
    assert names(graph, near) == {"a", "b", "c"}
    backwards = asked[0], asked[1] + len(graph.relations)
    liking = names(graph, extractor(graph, 3).extract(*backwards))
    assert "cake" not in liking


def test_what_is_outside_comes_the_best_first(random_graph: GraphBuilder) -> None:
    graph = random_graph(3, num_entities=80, num_facts=120)
    heads, relations, _ = ask(graph, 3, None)
    few, all_scored = (extractor(graph, k).extract(heads, relations, outside=True) for k in (9, 1))
    assert few.outside is not None
    assert all_scored.outside is not None
    for number in range(len(heads)):
        start, stop = few.outside.offsets[number : number + 2].tolist()
        outside = few.outside.entities[start:stop].tolist()
        scores = few.outside.scores[start:stop].tolist()
        assert scores == sorted(scores, reverse=True)
        assert all(score > 0 for score in scores)
        # The order of the others is the order in which larger views would take them in.
        assert not set(outside) & set(members(few)[number])
        for size in (10, 14):
            larger = extractor(graph, size, tolerance=0.05 * size / 9)
            views = larger.extract(heads, relations)
            grown = set(members(few)[number]) | set(outside[: size - 9])
            assert set(members(views)[number]) == grown
