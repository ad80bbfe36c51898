"""Prediction: an answer to a query with the candidates it competes with; what is explained."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.errors import DataError

NOT_SEEN = -1  # in place of an answer that the query does not see


@dataclass(frozen=True)
class Prediction:
    """An answer to the query (head, relation, ?), in ids; the relation may be an inverse."""

    head: int
    relation: int
    answer: int
    competitors: Bool[Tensor, " V"]  # see ``find_competitors``

    def within(self, entities: Int[Tensor, " n"]) -> "Prediction":
        """Returns the prediction among the entities that its query sees, by their places there.

        Args:
            entities: what the query sees, rising; the head is among them.
        """
        ids = torch.tensor([self.head, self.answer])
        head, answer = torch.searchsorted(entities, ids).tolist()
        is_seen = answer < len(entities) and int(entities[answer]) == self.answer
        answer = answer if is_seen else NOT_SEEN
        return Prediction(head, self.relation, answer, self.competitors[entities])

    def score(self, scores: Float[Tensor, " V"]) -> Float[Tensor, ""]:
        """Returns the answer's score; the lowest of all where the query does not see it."""
        return scores.min() if self.answer == NOT_SEEN else scores[self.answer]

    def log_odds(self, scores: Float[Tensor, " V"]) -> Float[Tensor, ""]:
        """Returns the answer's score less the log-sum-exp of its competitors' scores.

        Where the query sees none of these, they count as one that has the lowest score.
        """
        rivals = scores[self.competitors]
        rivals = rivals if len(rivals) else scores.min()[None]
        return self.score(scores) - rivals.logsumexp(0)


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
