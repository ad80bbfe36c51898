"""Walks over a graph's edges: connected components and distances."""

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

UNREACHED = 2**30  # further than any walk, and twice it still fits


def connected_components(one: Ids, other: Ids, num_entities: int) -> Ids:
    """Returns for each entity the lowest one that is linked to it, in any direction.

    Args:
        one: an end of each link.
        other: its other end.
        num_entities: how many entities there are; one without links is its own component.
    """
    root = np.arange(num_entities)
    while True:
        first, second = root[one], root[other]
        apart = first != second
        if not apart.any():
            return root
        # Roots are joined, the higher to the lower, then paths to them are shortened.
        low, high = np.minimum(first, second)[apart], np.maximum(first, second)[apart]
        np.minimum.at(root, high, low)
        while not np.array_equal(root, jumped := root[root]):
            root = jumped


def distances(entity: int, sender: Ids, receiver: Ids, num_entities: int) -> Ids:
    """Returns how many edges away from ``entity`` each one is, ``UNREACHED`` if it is not.

    Edges are walked from sender to receiver; where inverses are among them, both ways.
    """
    distance = np.full(num_entities, UNREACHED)
    distance[entity] = 0
    reached = np.array([entity])
    step = 0
    while len(reached):
        step += 1
        neighbours = receiver[distance[sender] == step - 1]
        reached = neighbours[distance[neighbours] == UNREACHED]
        distance[reached] = step
    return distance
