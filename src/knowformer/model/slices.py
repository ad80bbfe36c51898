"""How many queries run together.

A slice is small enough for its states to stay in a core's caches, and memory grows with the slices
in flight instead of the batch.
"""

# Floats of one state tensor of a slice: 1 MB, about a core's share of second-level cache.
SLICE_FLOATS = 2**18


def slice_size(batch_size: int, num_entities: int, width: int) -> int:
    """Returns the queries of a slice; a function of the work alone, never of the threads."""
    return max(1, min(-(-batch_size // 2), SLICE_FLOATS // max(1, num_entities * width)))
