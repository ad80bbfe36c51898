"""How many queries run together: a micro-batch's states stay in the shared cache.

Memory grows with the micro-batches in flight instead of the batch.
"""

# Floats of one state tensor of a micro-batch: 1 MB. Smaller ones lose more to calls than they gain.
MICRO_BATCH_FLOATS = 2**18


def micro_batch_size(batch_size: int, num_entities: int, width: int) -> int:
    """Returns the queries of a micro-batch; a function of the work alone, never of the threads."""
    return max(1, min(-(-batch_size // 2), MICRO_BATCH_FLOATS // max(1, num_entities * width)))
