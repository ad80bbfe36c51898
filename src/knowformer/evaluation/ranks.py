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
from knowformer.queries.scores import Scores

TiePolicy = Literal["realistic", "optimistic", "pessimistic"]
TIE_POLICIES: tuple[TiePolicy, ...] = ("realistic", "optimistic", "pessimistic")


@dataclass(frozen=True)
class Ranks:
    """Ranks of F answers, from 1."""

    optimistic: Float[Tensor, " F"]
    pessimistic: Float[Tensor, " F"]
    is_seen: Bool[Tensor, " F"]  # whether the answer is in its query's view
    scores: Float[Tensor, " F"] | None = None  # of the answers; -inf outside the view

    @property
    def realistic(self) -> Float[Tensor, " F"]:
        """The mean of the optimistic and the pessimistic rank."""
        return (self.optimistic + self.pessimistic) / 2

    def under(self, policy: TiePolicy) -> Float[Tensor, " F"]:
        """Returns the ranks under a tie policy."""
        ranks: Float[Tensor, " F"] = getattr(self, policy)
        return ranks

    def __getitem__(self, at: Bool[Tensor, " F"]) -> "Ranks":
        scores = None if self.scores is None else self.scores[at]
        return Ranks(self.optimistic[at], self.pessimistic[at], self.is_seen[at], scores)


def filtered_ranks(
    scores: Scores,
    known: tuple[Int[Tensor, " K"], Int[Tensor, " K"]],
    queries: Int[Tensor, " F"],
    tails: Int[Tensor, " F"],
) -> Ranks:
    """Ranks answer ``tails[f]`` of query ``queries[f]`` among the candidates that are not known.

    An answer that its query does not see ranks below all that it sees, among the others by the
    order of ``scores.outside``, tied where that says nothing.

    Args:
        scores: of the queries; higher is better.
        known: pairs of a query and a known answer; known answers do not compete with each other.
        queries: the query of each answer.
        tails: the answers.
    """
    if not torch.isfinite(scores.values).all():
        raise KnowformerError(
            "Expected finite scores to rank, got NaN or infinity; the model's weights are broken."
        )
    is_known, columns = scores.mask(*known), scores.columns(queries, tails)
    # -inf is below every finite score, so what is known neither beats nor ties an answer.
    competitors = scores.table.masked_fill(is_known, -torch.inf)[queries]
    is_seen = columns >= 0
    answers = competitors.new_full((len(queries), 1), -torch.inf)
    seen = is_seen.nonzero().squeeze(1)
    answers[seen, 0] = scores.table[queries[seen], columns[seen]]
    competitors[seen, columns[seen]] = -torch.inf
    higher = (competitors > answers).sum(1)
    equal = (competitors == answers).sum(1)
    higher, equal = higher.double(), equal.double()
    for fact in (~is_seen).nonzero().squeeze(1).tolist():
        above, tied = _rank_outside(scores, known, int(queries[fact]), int(tails[fact]))
        higher[fact] += above
        equal[fact] = tied
    return Ranks(1 + higher, 1 + higher + equal, is_seen, answers.squeeze(1))


def _rank_outside(
    scores: Scores, known: tuple[Int[Tensor, " K"], Int[Tensor, " K"]], query: int, tail: int
) -> tuple[int, int]:
    """Ranks an answer among the entities that its query neither sees nor knows as answers.

    Returns:
        How many come before it and how many are tied with it.
    """
    seen = scores.entities_of(query)
    others = known[1][(known[0] == query) & (known[1] != tail)]
    others = others[~torch.isin(others, seen)]
    num_outside = scores.num_entities - len(seen)
    if scores.outside is None:
        return 0, num_outside - len(others) - 1
    entities, values = scores.outside.of_query(query)
    competes = ~torch.isin(entities, others)
    place = (entities == tail).nonzero()
    if len(place) == 0:
        above = int(competes.sum())
        listed_others = len(entities) - above
        return above, num_outside - len(entities) - (len(others) - listed_others) - 1
    value = values[place[0, 0]]
    above = int(((values > value) & competes).sum())
    return above, int(((values == value) & competes).sum()) - 1
