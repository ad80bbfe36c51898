"""Negative sampling for the binary loss."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def sample_negatives(
    known: Bool[Tensor, "B V"], num_negatives: int, *, generator: torch.Generator
) -> Int[Tensor, "B N"]:
    """Samples tails that are not known answers, uniformly and with replacement.

    A query to which every entity is a known answer gets arbitrary ones; the loss gives them no
    weight.
    """
    weights = (~known).float()
    weights[known.all(1)] = 1.0
    return torch.multinomial(weights, num_negatives, replacement=True, generator=generator)
