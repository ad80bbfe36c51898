"""Features of a query that its candidates' scores are compared with."""

import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


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
    """Entities that are not; at least one."""
    log_total: Float[np.ndarray, " B"]
    """Log of the sum of exp(score) over all entities: what a softmax divides by."""

    def take(self, queries: Int[np.ndarray, " N"]) -> "QueryFeatures":
        """Returns the features of these queries, in this order; a query may come again."""
        return QueryFeatures(*(getattr(self, field.name)[queries] for field in fields(self)))


def query_features(
    scores: Float[Tensor, "B V"], seen: Bool[Tensor, "B V"], relations: Int[Tensor, " B"]
) -> QueryFeatures:
    """Returns the features of queries, given all scores and which entities are answers in sight."""
    return QueryFeatures(
        relations=relations.numpy(),
        competitors=logmeanexp_of_competitors(scores, seen).numpy(),
        num_seen=seen.sum(1).numpy(),
        num_candidates=_num_candidates(seen).numpy(),
        log_total=scores.double().logsumexp(1).numpy(),
    )


def logmeanexp_of_competitors(
    scores: Float[Tensor, "B V"], seen: Bool[Tensor, "B V"]
) -> Float[Tensor, " B"]:
    """Returns the log of the mean of exp(score) over the candidates of each query.

    Answers that the model sees as facts are left out, as in training's cross-entropy. A mean, not a
    sum: it compares between graphs of different sizes.
    """
    scores = scores.double()
    others = scores.masked_fill(seen, -torch.inf).logsumexp(1) - _num_candidates(seen).log()
    everyone = scores.logsumexp(1) - math.log(max(1, scores.shape[1]))
    return torch.where(seen.all(1), everyone, others)


def _num_candidates(seen: Bool[Tensor, "B V"]) -> Float[Tensor, " B"]:
    return (~seen).sum(1).clamp(min=1).double()
