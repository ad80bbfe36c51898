"""Filtered ranks from scores under three tie policies.

With g candidates that score higher than the answer and e other candidates that score the same:
    optimistic   1 + g              the answer wins every tie
    pessimistic  1 + g + e          it loses every tie (what the authors' released code prints)
    realistic    1 + g + e / 2      the expected rank when ties are broken at random; the headline
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.errors import KnowformerError

TiePolicy = Literal["realistic", "optimistic", "pessimistic"]
TIE_POLICIES: tuple[TiePolicy, ...] = ("realistic", "optimistic", "pessimistic")


@dataclass(frozen=True)
class Ranks:
    """Ranks of F answers, from 1."""

    optimistic: Float[Tensor, " F"]
    pessimistic: Float[Tensor, " F"]

    @property
    def realistic(self) -> Float[Tensor, " F"]:
        """The mean of the optimistic and the pessimistic rank."""
        return (self.optimistic + self.pessimistic) / 2

    def under(self, policy: TiePolicy) -> Float[Tensor, " F"]:
        """Returns the ranks under a tie policy."""
        ranks: Float[Tensor, " F"] = getattr(self, policy)
        return ranks

    def __getitem__(self, at: Bool[Tensor, " F"]) -> "Ranks":
        return Ranks(self.optimistic[at], self.pessimistic[at])


def filtered_ranks(
    scores: Float[Tensor, "B V"],
    known: Bool[Tensor, "B V"],
    rows: Int[Tensor, " F"],
    tails: Int[Tensor, " F"],
) -> Ranks:
    """Ranks answer ``tails[f]`` of query ``rows[f]`` among the candidates that are not known.

    Args:
        scores: one row per query, higher is better.
        known: True at every known answer; known answers do not compete with each other.
        rows: the query of each answer.
        tails: the answers.
    """
    if not torch.isfinite(scores).all():
        raise KnowformerError(
            "Expected finite scores to rank, got NaN or infinity; the model's weights are broken."
        )
    answers = scores[rows, tails].unsqueeze(1)
    # -inf is below every finite score, so known answers neither beat nor tie an answer.
    candidates = scores.masked_fill(known, -torch.inf)[rows]
    candidates[torch.arange(len(rows)), tails] = -torch.inf
    higher = (candidates > answers).sum(1)
    equal = (candidates == answers).sum(1)
    return Ranks((1 + higher).double(), (1 + higher + equal).double())
