"""How many queries run together.

A slice's states stay in the shared cache, and memory grows with the slices in flight instead of
the batch.
"""

# Floats of one state tensor of a slice: 4 MB. Smaller ones lose more to calls than they gain.
SLICE_FLOATS = 2**18


def slice_size(batch_size: int, num_entities: int, width: int) -> int:
    """Returns the queries of a slice; a function of the work alone, never of the threads."""
    return max(1, min(-(-batch_size // 2), SLICE_FLOATS // max(1, num_entities * width)))
