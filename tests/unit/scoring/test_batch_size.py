import pytest

from knowformer.errors import ConfigError
from knowformer.scoring.batch_size import (
    BATCH_FLOATS,
    MOST_QUERIES,
    check_whole_graph,
    queries_at_once,
)


@pytest.mark.parametrize("num_entities", [0, 1, 14, 40_000, 10**6, 10**9])
def test_a_batch_fits_its_memory_and_has_a_query_at_least(num_entities: int):
    size = queries_at_once(num_entities)
    assert 1 <= size <= MOST_QUERIES
    assert size == 1 or size * num_entities <= BATCH_FLOATS
    assert size == MOST_QUERIES or (size + 1) * num_entities > BATCH_FLOATS


def test_a_query_on_a_graph_larger_than_memory_is_refused() -> None:
    check_whole_graph(1000, 5000, 32)
    with pytest.raises(ConfigError, match=r"takes about 12,872 GB.*`model\.view_size`"):
        check_whole_graph(10**10, 10**9, 32)
