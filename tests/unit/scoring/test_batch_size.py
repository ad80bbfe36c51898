import pytest

from knowformer.scoring.batch_size import BATCH_FLOATS, MOST_QUERIES, queries_at_once


@pytest.mark.parametrize("num_entities", [0, 1, 14, 40_000, 10**6, 10**9])
def test_a_batch_fits_its_memory_and_has_a_query_at_least(num_entities: int):
    size = queries_at_once(num_entities)
    assert 1 <= size <= MOST_QUERIES
    assert size == 1 or size * num_entities <= BATCH_FLOATS
    assert size == MOST_QUERIES or (size + 1) * num_entities > BATCH_FLOATS
