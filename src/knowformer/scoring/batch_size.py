"""Memory policy of inference: how many queries are scored at once."""

BATCH_FLOATS = 2**21  # of one table of scores: 8 MB
MOST_QUERIES = 64


def queries_at_once(num_entities: int) -> int:
    """Returns how many queries' scores of every entity are held at once."""
    return max(1, min(MOST_QUERIES, BATCH_FLOATS // max(1, num_entities)))
