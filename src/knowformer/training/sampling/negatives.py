"""Negative candidates: which entities a query is trained against."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def sample_negatives(
    known: Bool[Tensor, "B V"], num_negatives: int, *, generator: torch.Generator
) -> Int[Tensor, "B N"]:
    """Samples tails that are not known answers, uniformly and with replacement.

    A query whose every entity is known has no negative; it gets any entity, and the losses give
    known answers no weight as negatives.
    """
    weights = (~known).float()
    weights[known.all(1)] = 1.0
    return torch.multinomial(weights, num_negatives, replacement=True, generator=generator)
