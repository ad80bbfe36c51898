"""Links: whether facts are about two entities that another fact links, in training and held out."""

import numpy as np

from knowformer.graph.fact_index import Ids, pair_keys, sorted_distinct

MANY = 0.1
HARDLY_ANY = 0.1  # of what training facts have: more of them are evidence worth learning to use


def num_linked_twice(facts: Ids, num_entities: int) -> int:
    """Returns how many facts are about two entities that another of them links, either way."""
    pairs = _pairs(facts, num_entities)
    pairs.sort()
    is_again = pairs[1:] == pairs[:-1]
    # As often as it stands beside an equal one: all that are in a run of at least two.
    return int((np.append(is_again, False) | np.append(False, is_again)).sum())


def num_linked(facts: Ids, graph_facts: Ids, num_entities: int) -> int:
    """Returns how many facts are about two entities that a fact of a graph links, either way."""
    linked = sorted_distinct(_pairs(graph_facts, num_entities), in_place=True)
    pairs = _pairs(facts, num_entities)
    places = np.searchsorted(linked, pairs).clip(max=max(len(linked) - 1, 0))
    return int((linked[places] == pairs).sum()) if len(linked) else 0


def are_links_misleading(in_training: float, held_out: float) -> bool:
    """Whether training facts have links that held-out facts lack: a model would look for them.

    Decision 0018 has the evidence.

    Args:
        in_training: fraction of the training facts whose entities another training fact links.
        held_out: fraction of the held-out facts whose entities a training fact links.
    """
    return in_training >= MANY and held_out < HARDLY_ANY * in_training


def _pairs(facts: Ids, num_entities: int) -> Ids:
    """Returns a number for the two entities of each fact, whichever is the head."""
    heads, tails = facts[:, 0], facts[:, 2]
    return pair_keys(np.minimum(heads, tails), np.maximum(heads, tails), num_entities)
