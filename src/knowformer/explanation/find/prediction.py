"""Prediction: an answer to a query with the candidates it competes with; what is explained."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from knowformer.errors import DataError


@dataclass(frozen=True)
class Prediction:
    """An answer to the query (head, relation, ?), in ids; the relation may be an inverse."""

    head: int
    relation: int
    answer: int
    competitors: Bool[Tensor, " V"]  # see ``find_competitors``

    def log_odds(self, scores: Float[Tensor, " V"]) -> Float[Tensor, ""]:
        """Returns the answer's score less the log-sum-exp of its competitors' scores."""
        return scores[self.answer] - scores[self.competitors].logsumexp(0)


def find_competitors(known: Bool[Tensor, " V"], answer: int) -> Bool[Tensor, " V"]:
    """Returns the candidates that an answer is compared with: those that are not known answers.

    Where no other candidate is left, all others are competitors.

    Args:
        known: True at the query's known answers.
        answer: the answer; never a competitor of itself.

    Raises:
        DataError: the graph has one entity alone.
    """
    if len(known) < 2:
        raise DataError("Expected at least two entities to explain an answer, got a graph of one.")
    unknown = ~known
    unknown[answer] = False
    competitors = unknown if bool(unknown.any()) else torch.ones_like(known)
    competitors[answer] = False
    return competitors
