import pytest

from knowformer.model.micro_batches import MICRO_BATCH_FLOATS, micro_batch_size


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("num_entities", [1, 100, 14_541, 10**7])
@pytest.mark.parametrize("batch_size", [1, 2, 15, 16, 512])
def test_a_micro_batch_fits_the_cache_and_leaves_work_for_two(
    batch_size: int, num_entities: int, width: int
) -> None:
    size = micro_batch_size(batch_size, num_entities, width)
    assert 1 <= size <= -(-batch_size // 2)
    assert size == 1 or size * num_entities * width <= MICRO_BATCH_FLOATS
    # One query more would be too many.
    more = size + 1
    assert more * num_entities * width > MICRO_BATCH_FLOATS or more > -(-batch_size // 2)


def test_a_graph_without_entities_has_a_size_too() -> None:
    assert micro_batch_size(8, 0, 16) == 4
