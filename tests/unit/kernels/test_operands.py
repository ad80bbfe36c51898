from collections.abc import Sequence
from dataclasses import astuple

import pytest
import torch
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.kernels.interface import (
    NO_HEAD,
    AttendWeights,
    Dropout,
    Edges,
    HopWeights,
    InputWeights,
    QueryView,
    ScoreWeights,
)

NUM_RELATIONS = 2


def edges_of(*facts: tuple[int, int, int], num_entities: int) -> Edges:
    numbered = torch.tensor(facts, dtype=torch.long).reshape(-1, 3)
    return Adjacency(numbered, num_entities=num_entities, num_relations=NUM_RELATIONS).edges


TRIANGLE = edges_of((0, 0, 1), (1, 1, 2), (2, 0, 0), (0, 1, 1), num_entities=3)
ISOLATED = edges_of(num_entities=1)
LOOP = edges_of((1, 1, 1), (3, 0, 1), (3, 0, 0), num_entities=5)
SUBGRAPHS = [TRIANGLE, ISOLATED, LOOP, TRIANGLE]


def assert_equal(ours: Edges, expected: Edges) -> None:
    for a, b in zip(astuple(ours), astuple(expected), strict=True):
        assert torch.equal(a, b) if isinstance(a, Tensor) else a == b


# ---- edges ---------------------------------------------------------------------------------------


def test_subgraphs_that_were_joined_come_back_as_they_were() -> None:
    joined = Edges.join(SUBGRAPHS)
    assert joined.num_entities == 12
    start = 0
    for subgraph in SUBGRAPHS:
        assert_equal(joined.subgraph(start, subgraph.num_entities), subgraph)
        start += subgraph.num_entities


def test_joining_one_subgraph_changes_nothing() -> None:
    for subgraph in SUBGRAPHS:
        assert_equal(Edges.join([subgraph]), subgraph)


def test_several_neighbours_come_back_side_by_side() -> None:
    assert_equal(Edges.join(SUBGRAPHS).subgraph(3, 6), Edges.join([ISOLATED, LOOP]))


@pytest.mark.parametrize("hidden", [[], [0], [2, 3, 7], "all"])
def test_edges_are_hidden_before_or_after_joining(hidden: list[int] | str) -> None:
    kept = torch.ones(sum(len(each.sender) for each in SUBGRAPHS), dtype=torch.bool)
    kept[:] = hidden != "all"
    if isinstance(hidden, list):
        kept[hidden] = False
    of_subgraph = kept.split([len(each.sender) for each in SUBGRAPHS])
    apart = [each.keep(mask) for each, mask in zip(SUBGRAPHS, of_subgraph, strict=True)]
    assert_equal(Edges.join(SUBGRAPHS).keep(kept), Edges.join(apart))


# ---- views ---------------------------------------------------------------------------------------


def joined_view() -> QueryView:
    return QueryView.join(
        [
            QueryView.whole(TRIANGLE, torch.tensor([2, 0])),
            QueryView.whole(ISOLATED, torch.tensor([NO_HEAD])),
            QueryView.whole(LOOP, torch.tensor([4])),
        ]
    )


def test_queries_of_one_graph_are_a_table_of_rows() -> None:
    view = QueryView.whole(LOOP, torch.tensor([1, 4, 0]))
    assert len(view) == 3
    assert view.offsets.tolist() == [0, 5, 10, 15]
    assert view.starts.tolist() == [0, 0, 0]
    assert (view.num_rows, view.max_rows, view.is_whole) == (15, 5, True)
    assert QueryView.join([view]).is_whole


def test_queries_of_several_graphs_have_segments_of_rows() -> None:
    view = joined_view()
    assert view.offsets.tolist() == [0, 3, 6, 7, 12]
    assert view.starts.tolist() == [0, 0, 3, 4]
    assert view.heads.tolist() == [2, 0, NO_HEAD, 4]
    assert (view.num_rows, view.max_rows, view.is_whole) == (12, 5, False)


def test_every_query_by_itself_sees_its_graph_alone() -> None:
    expected = [(TRIANGLE, 2), (TRIANGLE, 0), (ISOLATED, NO_HEAD), (LOOP, 4)]
    rows: list[int] = []
    for (alone, segment), (edges, head) in zip(joined_view().one_by_one(), expected, strict=True):
        assert_equal(alone.edges, edges)
        assert alone.heads.tolist() == [head]
        assert alone.is_whole
        rows += range(segment.start, segment.stop)
    assert rows == list(range(12))


@pytest.mark.parametrize(("first", "last"), [(0, 4), (0, 1), (1, 3), (3, 4), (2, 2)])
def test_some_queries_of_a_view_see_what_they_saw(first: int, last: int) -> None:
    some, all_queries = joined_view().queries(first, last), list(joined_view().one_by_one())
    assert len(some) == last - first
    assert some.offsets[0] == 0
    for (ours, segment), (theirs, before) in zip(
        some.one_by_one(), all_queries[first:last], strict=True
    ):
        assert_equal(ours.edges, theirs.edges)
        assert torch.equal(ours.heads, theirs.heads)
        assert segment.stop - segment.start == before.stop - before.start


@pytest.mark.parametrize(("first", "last"), [(0, 3), (0, 1), (1, 3), (2, 3)])
def test_queries_with_graphs_of_their_own_see_what_they_saw(first: int, last: int) -> None:
    graphs = (TRIANGLE, ISOLATED, LOOP, TRIANGLE)
    joined = QueryView.join([QueryView.whole(graph, torch.tensor([0])) for graph in graphs])
    view = joined.select(torch.tensor([0, 2, 3]))  # the second graph stays, its query does not
    assert view.are_apart
    part, entities = view.queries_apart(first, last)
    assert part.edges.num_entities == entities.stop - entities.start
    assert part.starts[0] == 0
    for (ours, _), (theirs, _) in zip(
        part.one_by_one(), list(view.one_by_one())[first:last], strict=True
    ):
        assert_equal(ours.edges, theirs.edges)


def test_queries_that_share_a_graph_are_not_apart() -> None:
    assert not joined_view().are_apart
    assert not QueryView.whole(LOOP, torch.tensor([1, 4])).are_apart


def test_views_are_joined_in_any_grouping() -> None:
    view = joined_view()
    views = [
        QueryView.whole(TRIANGLE, torch.tensor([2, 0])),
        QueryView.join(
            [
                QueryView.whole(ISOLATED, torch.tensor([NO_HEAD])),
                QueryView.whole(LOOP, torch.tensor([4])),
            ]
        ),
    ]
    regrouped = QueryView.join(views)
    assert_equal(regrouped.edges, view.edges)
    for name in ("offsets", "starts", "heads"):
        assert torch.equal(getattr(regrouped, name), getattr(view, name)), name


def test_no_queries_are_a_view_without_rows() -> None:
    view = QueryView.whole(LOOP, torch.zeros(0, dtype=torch.long))
    assert (len(view), view.num_rows, view.max_rows) == (0, 0, 0)


# ---- weights -------------------------------------------------------------------------------------


def linear(number: float) -> tuple[Tensor, Tensor]:
    return number + torch.arange(4.0).view(2, 2), torch.full((2,), number)


def vectors_of(
    weights: HopWeights | InputWeights | AttendWeights | ScoreWeights,
) -> Sequence[float]:
    return weights.vectors[:, 0].tolist()


def test_weights_lie_side_by_side_in_the_order_that_kernels_read_them() -> None:
    row = torch.ones(2)
    hop = HopWeights.pack(5 * row, [linear(1.0), linear(2.0)], (3 * row, 4 * row))
    assert vectors_of(hop) == [5, 1, 2, 3, 4]
    assert hop.norm
    assert not HopWeights.pack(5 * row, [linear(1.0)], None).norm
    start = InputWeights.pack(row[None], linear(1.0)[0], linear(2.0), 3 * row)
    assert vectors_of(start) == [2, 3]
    assert start.marks_head
    assert not InputWeights.pack(row[None], linear(1.0)[0], linear(2.0), None).marks_head
    attend = AttendWeights.pack(
        (linear(1.0), linear(2.0)),
        (3 * row, 4 * row),
        (linear(5.0), linear(6.0)),
        (7 * row, 8 * row),
    )
    assert vectors_of(attend) == [1, 2, 3, 4, 5, 6, 7, 8]
    score = ScoreWeights.pack(linear(1.0), (9 * row[None], torch.tensor([2.0])))
    assert vectors_of(score) == [1, 9]
    # Every map is stored as (in x out).
    first, second = linear(1.0)[0].T, linear(2.0)[0].T
    assert torch.equal(hop.matrices, torch.stack([first, second]))
    assert torch.equal(start.matrices, torch.stack([first, second]))
    assert torch.equal(attend.matrices[:2], torch.stack([first, second]))
    assert torch.equal(score.matrices[0], first)


def test_weights_of_some_entities_are_theirs_or_those_of_all() -> None:
    extra = torch.arange(8.0).view(4, 2)
    of_each = InputWeights.pack(extra, linear(1.0)[0], linear(2.0), None)
    assert torch.equal(of_each.of_entities(1, 2).extra, extra[1:3])
    shared = InputWeights.pack(extra[:1], linear(1.0)[0], linear(2.0), None)
    assert torch.equal(shared.of_entities(1, 2).extra, extra[:1])


def test_dropout_keeps_the_mean() -> None:
    every_byte = torch.arange(256, dtype=torch.uint8).view(16, 16)
    dropout = Dropout(every_byte, 26)
    kept = dropout.random_bytes >= dropout.threshold
    assert (kept * dropout.scale).mean().item() == pytest.approx(1.0)
