"""Relations that take each other's part in a batch, so that rare ones learn what any may do.

A new graph may be full of a relation that had few facts in training. Now and then such a relation
stands for a frequent one, everywhere in the batch: in its graph and in its queries.
"""

import torch
from jaxtyping import Int
from torch import Tensor


def swap_relations(
    num_relations: int, share: float, *, generator: torch.Generator
) -> Int[Tensor, " R"] | None:
    """Returns for each relation, with inverses, the one whose part it takes; None: its own.

    A random share of the relations trade parts with each other. Inverses follow.
    """
    if not share:
        return None
    chosen = (torch.rand(num_relations, generator=generator) < share).nonzero().squeeze(1)
    parts = torch.arange(num_relations)
    parts[chosen] = chosen[torch.randperm(len(chosen), generator=generator)]
    return torch.cat([parts, parts + num_relations])
