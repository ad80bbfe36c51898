"""Comparison: a model's ranks beside those of a baseline, on the same facts."""

import math
from collections.abc import Mapping

from jaxtyping import Bool, Float
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from knowformer.evaluation.baselines.ranking import BASELINES, Baseline
from knowformer.evaluation.metrics import Metrics, rank_metrics
from knowformer.evaluation.ranks import Ranks

CLEARLY = 2.0  # standard errors


class BaselineReport(BaseModel):
    """Metrics of a baseline; those by side are of realistic ranks."""

    model_config = ConfigDict(frozen=True)

    realistic: Metrics
    optimistic: Metrics
    pessimistic: Metrics
    head: Metrics
    tail: Metrics
    is_beaten: bool
    """Whether the model's MRR is higher by more than two standard errors of the difference."""


BaselineReports = dict[Baseline, BaselineReport]


def compare(
    reciprocal_ranks: Float[Tensor, " F"],
    baselines: Mapping[Baseline, Ranks],
    asks_head: Bool[Tensor, " F"],
) -> BaselineReports:
    """Returns the metrics of baselines, and whether a model beats them.

    Args:
        reciprocal_ranks: the model's, realistic.
        baselines: their ranks of the same facts.
        asks_head: which of them ask for a head.
    """
    return {
        name: BaselineReport(
            realistic=rank_metrics(ranks.realistic),
            optimistic=rank_metrics(ranks.optimistic),
            pessimistic=rank_metrics(ranks.pessimistic),
            head=rank_metrics(ranks[asks_head].realistic),
            tail=rank_metrics(ranks[~asks_head].realistic),
            is_beaten=is_clearly_above(reciprocal_ranks, 1.0 / ranks.realistic),
        )
        for name, ranks in baselines.items()
    }


def is_clearly_above(reciprocal_ranks: Float[Tensor, " F"], others: Float[Tensor, " F"]) -> bool:
    """Returns whether a mean is above another by more than chance; facts are paired."""
    gaps = reciprocal_ranks - others
    if len(gaps) < 2:
        return False
    return gaps.mean().item() > CLEARLY * gaps.std().item() / math.sqrt(len(gaps))


def unbeaten(reports: BaselineReports | None) -> str | None:
    """Names the baselines that a model does not beat clearly, with their MRR; None if it does."""
    named = [
        f"{BASELINES[name]} ({report.realistic['mrr']:.3f})"
        for name, report in (reports or {}).items()
        if not report.is_beaten
    ]
    return " and ".join(named) or None
