import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import NO_HEAD, QueryView
from knowformer.model.shared_work import DistinctQueries, add_segments, take_segments

PAIR = KnowledgeGraph.from_triples([("a", "r", "b")]).adjacency.edges
CHAIN = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c")]).adjacency.edges


def test_queries_of_one_graph_are_told_apart_by_their_relations_alone() -> None:
    view = QueryView.whole(CHAIN, torch.tensor([0, 1, 2, 0]))
    distinct = DistinctQueries.among(view, torch.tensor([7, 4, 7, 4]))
    assert distinct.relations.tolist() == [4, 7]
    assert distinct.of_query.tolist() == [1, 0, 1, 0]
    assert distinct.view.heads.tolist() == [NO_HEAD, NO_HEAD]
    assert distinct.view.offsets.tolist() == [0, 3, 6]
    assert distinct.view.is_whole


def test_queries_of_several_graphs_are_told_apart_by_both() -> None:
    view = QueryView.join(
        [
            QueryView.whole(PAIR, torch.tensor([0, 1, 0])),
            QueryView.whole(CHAIN, torch.tensor([2, 1])),
        ]
    )
    distinct = DistinctQueries.among(view, torch.tensor([3, 0, 3, 3, 3]))
    assert distinct.relations.tolist() == [0, 3, 3]
    assert distinct.view.starts.tolist() == [0, 0, 2]
    assert distinct.view.offsets.tolist() == [0, 2, 4, 7]
    assert distinct.of_query.tolist() == [1, 0, 1, 2, 2]
    assert distinct.segments(torch.tensor([0, 3])) == [slice(2, 4), slice(4, 7)]


def test_every_query_differs_if_no_two_agree() -> None:
    view = QueryView.whole(PAIR, torch.tensor([0, 0]))
    distinct = DistinctQueries.among(view, torch.tensor([1, 0]))
    assert distinct.of_query.tolist() == [1, 0]
    assert distinct.view.num_rows == view.num_rows


def test_adding_segments_is_the_gradient_of_taking_them() -> None:
    rows = torch.arange(10.0).view(5, 2).requires_grad_()
    segments = [slice(0, 2), slice(2, 5), slice(0, 2), slice(0, 2)]
    taken = take_segments(rows, segments)
    assert taken.tolist() == torch.cat([rows[segment] for segment in segments]).tolist()
    above = torch.randn(taken.shape, generator=torch.Generator().manual_seed(0))
    taken.backward(above)
    sums = torch.zeros(5, 2)
    add_segments(sums, segments, above)
    assert rows.grad is not None
    torch.testing.assert_close(sums, rows.grad)
