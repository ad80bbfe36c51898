"""Relation permutation augmentation: relations trade their weights within a batch.

A new graph may be full of a relation that was rare in training. Permuting the ids of some
relations, in the graph and in the queries of a batch, lets the weights of rare relations train on
the facts of frequent ones.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.inverse import inverse_of


def permute_relations(
    num_relations: int, fraction: float, *, generator: torch.Generator
) -> Int[Tensor, " R"] | None:
    """Returns a permutation of the relation ids, inverses included; None is the identity.

    A random fraction of the relations is permuted among themselves; inverses follow.
    """
    if not fraction:
        return None
    chosen = (torch.rand(num_relations, generator=generator) < fraction).nonzero().squeeze(1)
    permutation = torch.arange(num_relations)
    permutation[chosen] = chosen[torch.randperm(len(chosen), generator=generator)]
    return torch.cat([permutation, inverse_of(permutation, num_relations)])
