"""Features of a query that its candidates' scores are compared with."""

from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.queries.scores import Scores


@dataclass(frozen=True)
class QueryFeatures:
    """What a score is compared with, one entry per query."""

    relations: Int[np.ndarray, " B"]
    """As asked: an inverse asks for heads."""
    competitors: Float[np.ndarray, " B"]
    """See ``logmeanexp_of_competitors``."""
    num_seen: Int[np.ndarray, " B"]
    """Answers that the model sees as facts."""
    num_candidates: Float[np.ndarray, " B"]
    """Entities that the query sees and that are not; at least one."""
    log_total: Float[np.ndarray, " B"]
    """Log of the sum of exp(score) over all that it sees: what a softmax divides by."""

    def take(self, queries: Int[np.ndarray, " N"]) -> "QueryFeatures":
        """Returns the features of these queries, in this order; a query may come again."""
        return QueryFeatures(*(getattr(self, field.name)[queries] for field in fields(self)))


def query_features(
    scores: Scores, seen: Bool[Tensor, "B W"], relations: Int[Tensor, " B"]
) -> QueryFeatures:
    """Returns the features of queries.

    Args:
        scores: of their candidates.
        seen: True in the scores' table at answers that the model sees as facts.
        relations: the queries'.
    """
    num_seen = seen.sum(1)
    return QueryFeatures(
        relations=relations.numpy(),
        competitors=logmeanexp_of_competitors(scores, seen).numpy(),
        num_seen=num_seen.numpy(),
        num_candidates=(scores.offsets.diff() - num_seen).clamp(min=1).double().numpy(),
        log_total=scores.table.double().logsumexp(1).numpy(),
    )


def logmeanexp_of_competitors(scores: Scores, seen: Bool[Tensor, "B W"]) -> Float[Tensor, " B"]:
    """Returns the log of the mean of exp(score) over the candidates of each query.

    Answers that the model sees as facts are left out, as in training's cross-entropy. A mean, not a
    sum: it compares between graphs of different sizes.
    """
    table, is_competitor = scores.table.double(), scores.is_candidate & ~seen
    num_competitors = is_competitor.sum(1)
    others = table.masked_fill(seen, -torch.inf).logsumexp(1) - _log_count(num_competitors)
    everyone = table.logsumexp(1) - _log_count(scores.is_candidate.sum(1))
    return torch.where(num_competitors == 0, everyone, others)


def _log_count(counts: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    return counts.clamp(min=1).double().log()
