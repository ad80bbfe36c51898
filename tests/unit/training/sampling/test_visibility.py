"""What a training batch sees: nothing of its own answers, in the whole graph and in views."""

from collections.abc import Callable

import pytest
import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.query import QueryBatch
from knowformer.training.sampling.epochs import TrainingGraph
from knowformer.training.sampling.visibility import SeenBatch, see_views, see_whole_graph
from knowformer.views.extractor import ViewExtractor
from knowformer.views.settings import ViewSettings


@pytest.fixture
def graph(random_graph: Callable[..., KnowledgeGraph]) -> TrainingGraph:
    made = random_graph(0, num_entities=40, num_facts=160)
    return TrainingGraph(made.adjacency, made.entity_keys, made.facts, targets="one", batch_size=24)


def batch_of(graph: TrainingGraph) -> QueryBatch:
    return next(graph.batches.epoch(torch.Generator().manual_seed(0)))


def look(
    graph: TrainingGraph, batch: QueryBatch, size: int, edge_dropout: float = 0.0
) -> SeenBatch:
    extractor = ViewExtractor(graph.adjacency, graph.entity_keys, ViewSettings(size=size))
    random = torch.Generator().manual_seed(1)
    return see_views(
        extractor, graph, batch, hide="facts", edge_dropout=edge_dropout, generator=random
    )


def edges_of(seen: SeenBatch, query: int) -> set[tuple[int, int, int]]:
    """The edges that a query sees, with entities as the graph numbers them."""
    assert seen.entities is not None
    alone, rows = list(seen.view.one_by_one())[query]
    members, edges = seen.entities[rows], alone.edges
    receiver = torch.repeat_interleave(torch.arange(len(members)), edges.offsets.diff().long())
    ends = members[edges.sender.long()], edges.relation, members[receiver]
    return set(zip(*(end.tolist() for end in ends), strict=True))


def test_a_query_sees_its_part_of_the_graph_without_its_own_facts(graph: TrainingGraph) -> None:
    seen = look(graph, batch_of(graph), size=15)
    assert 0 < len(seen.batch) == len(seen.view)
    assert seen.view.offsets.diff().max() <= 15
    for query in range(len(seen.batch)):
        head, relation = int(seen.batch.heads[query]), int(seen.batch.relations[query])
        targets = seen.batch.tails[seen.batch.rows == query].tolist()
        edges = edges_of(seen, query)
        assert edges
        assert not {(head, relation, target) for target in targets} & edges


def test_only_targets_that_are_seen_stay_and_only_queries_that_have_one(
    graph: TrainingGraph,
) -> None:
    batch = batch_of(graph)
    seen = look(graph, batch, size=8)
    assert len(seen.batch) < len(batch)
    assert seen.entities is not None
    segments = seen.entities.split(seen.view.offsets.diff().tolist())
    for query, tail in zip(seen.batch.rows.tolist(), seen.batch.tails.tolist(), strict=True):
        assert tail in segments[query].tolist()
    assert set(seen.batch.rows.tolist()) == set(range(len(seen.batch)))
    heads = [int(segment[at]) for segment, at in zip(segments, seen.view.heads, strict=True)]
    assert heads == seen.batch.heads.tolist()
    # Keys are of all entities of the edges, those of queries that went included.
    assert len(seen.entity_keys) == seen.view.edges.num_entities


def test_edges_are_dropped_at_random_from_views_too(graph: TrainingGraph) -> None:
    batch = batch_of(graph)
    all_edges = look(graph, batch, size=15).view.edges
    some = look(graph, batch, size=15, edge_dropout=0.5).view.edges
    assert 0 < len(some.sender) < len(all_edges.sender)


def test_the_whole_graph_is_seen_without_the_facts_of_the_batch(graph: TrainingGraph) -> None:
    batch = batch_of(graph)
    seen = see_whole_graph(
        graph, batch, hide="facts", edge_dropout=0.0, generator=torch.Generator()
    )
    assert seen.entities is None
    assert seen.view.is_whole
    assert len(seen.view.edges.sender) < graph.adjacency.num_edges
    assert seen.batch.relations.tolist() == sorted(batch.relations.tolist())
