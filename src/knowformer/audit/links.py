"""Links: whether facts are about two entities that another fact links, in training and held out."""

import numpy as np

from knowformer.graph.fact_index import Ids

MANY = 0.1
HARDLY_ANY = 0.1  # of what training facts have: more of them are evidence worth learning to use


def num_linked_twice(facts: Ids, num_entities: int) -> int:
    """Returns how many facts are about two entities that another of them links, either way."""
    _, counts = np.unique(_pairs(facts, num_entities), return_counts=True)
    return int(counts[counts > 1].sum())


def num_linked(facts: Ids, graph_facts: Ids, num_entities: int) -> int:
    """Returns how many facts are about two entities that a fact of a graph links, either way."""
    linked = np.unique(_pairs(graph_facts, num_entities))
    return int(np.isin(_pairs(facts, num_entities), linked).sum())


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
    ends = np.sort(facts[:, [0, 2]], axis=1)
    return ends[:, 0] * np.int64(num_entities) + ends[:, 1]
