"""Memory policy of inference: how many queries are scored at once, and which cannot be."""

from knowformer.errors import ConfigError
from knowformer.system.environment import total_memory

BATCH_FLOATS = 2**21  # of one table of scores: 8 MB
MOST_QUERIES = 64
WORKING_TENSORS = 10  # with a row per entity, of a query that sees the whole graph
EDGE_BYTES = 72  # of both orders of the edges, and of what they are made from


def queries_at_once(num_entities: int) -> int:
    """Returns how many queries' scores of every entity are held at once."""
    return max(1, min(MOST_QUERIES, BATCH_FLOATS // max(1, num_entities)))


def check_whole_graph(num_entities: int, num_edges: int, width: int) -> None:
    """Refuses queries that see more than this machine has memory for, before any is taken.

    Args:
        num_entities: that a query sees: all.
        num_edges: of the graph, inverses included.
        width: numbers in the state of an entity.

    Raises:
        ConfigError: the message says how much it would take, and names views.
    """
    needed = 4.0 * WORKING_TENSORS * width * num_entities + EDGE_BYTES * num_edges
    total = total_memory()
    if total is not None and needed > total:
        raise ConfigError(
            f"Expected a query that fits into the {total / 1e9:,.0f} GB of this machine, got one "
            f"that sees all {num_entities:,} entities and {num_edges:,} edges, which takes about "
            f"{needed / 1e9:,.0f} GB. Train a model whose queries see a part of the graph each: "
            "`model.view_size`."
        )
