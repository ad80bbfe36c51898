import pytest
import torch

from knowformer.queries.scores import Scores
from knowformer.views.views import Outside

# Two queries of a graph of six entities: one sees 1, 3 and 4, the other 0 and 5.
RAGGED = Scores(
    values=torch.tensor([0.1, 0.3, 0.4, 1.0, 1.5]),
    offsets=torch.tensor([0, 3, 5]),
    num_entities=6,
    entities=torch.tensor([1, 3, 4, 0, 5]),
)
QUERIES, ENTITIES = torch.tensor([0, 0, 1, 1]), torch.tensor([3, 5, 5, 4])


def test_a_table_has_a_row_per_query_and_nothing_where_there_is_no_candidate() -> None:
    table = RAGGED.table
    assert table[0].tolist() == RAGGED.values[:3].tolist()
    assert table[1].tolist() == [1.0, 1.5, -torch.inf]
    assert RAGGED.is_candidate.tolist() == [[True] * 3, [True, True, False]]


def test_an_entity_is_found_in_its_column_or_not_at_all() -> None:
    assert RAGGED.columns(QUERIES, ENTITIES).tolist() == [1, -1, 1, -1]
    assert RAGGED.mask(QUERIES, ENTITIES).tolist() == [[False, True, False], [False, True, False]]


def test_columns_lead_back_to_entities() -> None:
    columns = torch.tensor([[2, 0], [1, 2]])
    assert RAGGED.entities_at(columns).tolist() == [[4, 1], [5, -1]]


def test_dense_scores_have_every_entity() -> None:
    nothing = -torch.inf
    expected = torch.tensor(
        [[nothing, 0.1, nothing, 0.3, 0.4, nothing], [1.0, nothing, nothing, nothing, nothing, 1.5]]
    )
    assert torch.equal(RAGGED.dense(), expected)


def test_where_all_is_seen_a_column_is_an_entity_and_nothing_is_copied() -> None:
    table = torch.arange(12.0).view(2, 6)
    scores = Scores.of_all(table)
    assert scores.table.data_ptr() == scores.dense().data_ptr() == table.data_ptr()
    assert torch.equal(scores.columns(QUERIES, ENTITIES), ENTITIES)
    assert scores.mask(QUERIES, ENTITIES).sum() == 4
    assert scores.is_candidate.all()


def test_a_view_of_everything_is_the_whole_graph() -> None:
    table = torch.arange(12.0).view(2, 6)
    whole = Scores.of_all(table)
    seen = Scores(whole.values, whole.offsets, 6, entities=torch.arange(6).repeat(2))
    assert torch.equal(seen.table, whole.table)
    assert torch.equal(seen.dense(), whole.dense())
    assert torch.equal(seen.mask(QUERIES, ENTITIES), whole.mask(QUERIES, ENTITIES))


def test_a_query_knows_what_it_sees_and_the_order_of_the_rest() -> None:
    assert RAGGED.entities_of(1).tolist() == [0, 5]
    assert Scores.of_all(torch.zeros(2, 3)).entities_of(1).tolist() == [0, 1, 2]
    outside = Outside(torch.tensor([0, 1, 3]), torch.tensor([2, 4, 1]), torch.tensor([9, 8, 7]))
    entities, values = outside.of_query(1)
    assert (entities.tolist(), values.tolist()) == ([4, 1], [8, 7])


def test_what_a_query_does_not_see_scores_as_the_last_that_it_sees() -> None:
    assert RAGGED.at(QUERIES, ENTITIES).tolist() == pytest.approx([0.3, 0.1, 1.5, 1.0])
