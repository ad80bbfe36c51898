"""EvaluationReport: metrics overall, by side and by relation category, headed by the protocol."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from knowformer.evaluation.metrics import Metrics, rank_metrics
from knowformer.evaluation.ranks import TIE_POLICIES, Ranks, TiePolicy

MetricsByPolicy = dict[TiePolicy, Metrics]


class Protocol(BaseModel):
    """How the numbers were made; without this they mean nothing."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    split: str
    setting: str
    num_facts: int
    num_queries: int
    num_candidates: int
    filter: str
    directions: str = "both: tails, and heads through the inverse relation"
    headline: str = "realistic rank: mean of optimistic and pessimistic"
    selection: str
    noise: str


class EvaluationReport(BaseModel):
    """Metrics under each tie policy; ``head`` and ``tail`` are the sides that were asked for."""

    model_config = ConfigDict(frozen=True)

    protocol: Protocol
    realistic: Metrics
    optimistic: Metrics
    pessimistic: Metrics
    head: MetricsByPolicy
    tail: MetricsByPolicy
    categories: dict[str, dict[str, Any]]
    link_prediction: dict[str, float] | None
    """AUROC and average precision; only of graphs with one relation."""
    seconds: float
    command: str

    @property
    def mrr(self) -> float:
        """The headline: realistic mean reciprocal rank."""
        return self.realistic["mrr"]


def metrics_by_policy(ranks: Ranks) -> MetricsByPolicy:
    """Returns the metrics of these ranks under each tie policy."""
    return {policy: rank_metrics(ranks.under(policy)) for policy in TIE_POLICIES}
