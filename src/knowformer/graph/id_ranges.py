"""Ids within their range: looked at once, where facts come in, so that no kernel has to.

Compiled code reads where an id tells it to, and does not look whether that is inside an array.
"""

import numpy as np
from jaxtyping import Int
from torch import Tensor

from knowformer.errors import DataError

_ROWS = 64  # taken as one row: a maximum over columns of three is ten times as slow


def check_facts(
    facts: Int[Tensor, "N 3"], *, num_entities: int, num_relations: int, where: str = "the graph"
) -> None:
    """Checks heads, relations and tails; takes about a hundredth of the time of sorting them.

    Args:
        facts: ids.
        num_entities: how many entities there are.
        num_relations: how many relations there are.
        where: what the facts are of, for the message.

    Raises:
        DataError: an id is out of range.
    """
    if not len(facts):
        return
    sizes = {"head": num_entities, "relation": num_relations, "tail": num_entities}
    largest: list[int] = _largest(facts).tolist()
    for (name, size), ids, highest in zip(sizes.items(), facts.T, largest, strict=True):
        if highest >= size:
            wrong = ids[(ids < 0) | (ids >= size)]
            raise DataError(
                f"Expected {name} ids from 0 to {size - 1:,} in {where}, got {int(wrong[0]):,}."
            )


def _largest(facts: Int[Tensor, "N 3"]) -> np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]:
    """Returns the largest id of each column, negative ones as unsigned, which are larger still."""
    ids = facts.contiguous().numpy()
    unsigned = ids.view(np.dtype(f"u{ids.itemsize}"))
    whole = len(unsigned) // _ROWS * _ROWS
    wide = unsigned[:whole].reshape(-1, 3 * _ROWS).max(axis=0, initial=0).reshape(-1, 3)
    return np.concatenate([wide, unsigned[whole:]]).max(axis=0)
