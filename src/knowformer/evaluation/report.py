"""EvaluationReport: metrics overall, by side and by relation category, headed by the protocol."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from knowformer.errors import KnowformerError
from knowformer.evaluation.baselines.comparison import BaselineReports, unbeaten
from knowformer.evaluation.baselines.ranking import BASELINES
from knowformer.evaluation.by_relation import RelationMetrics
from knowformer.evaluation.metrics import HITS_AT, Metrics, rank_metrics
from knowformer.evaluation.ranked_facts import RankedFacts
from knowformer.evaluation.ranks import TIE_POLICIES, Ranks, TiePolicy
from knowformer.evaluation.reliability import CalibrationReport
from knowformer.tables import Cell, Column, TableView, Tabular
from knowformer.views.settings import ViewSettings

MetricsByPolicy = dict[TiePolicy, Metrics]

METRIC_NAMES = ("mrr", *(f"hits@{k}" for k in HITS_AT), "mr")
SHOWN_POLICIES: tuple[TiePolicy, ...] = ("realistic", "pessimistic", "optimistic")
DECIMALS = {"mr": 1}


class EvaluationProtocol(BaseModel):
    """How the metrics were computed; heads every report."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    split: str
    setting: str
    num_facts: int
    sampled_from: int | None = None
    """Facts of the split, where only a sample of them was asked."""
    num_queries: int
    num_candidates: int
    filter: str
    directions: str = "both: tails, and heads through the inverse relation"
    headline: str = "realistic rank: mean of optimistic and pessimistic"
    selection: str
    noise: str


class ViewReport(BaseModel):
    """How well the answers lie inside their queries' views."""

    model_config = ConfigDict(frozen=True)

    size: int
    """Entities that a query sees, at most."""
    coverage: float
    """Fraction of the answers that their query sees; the others rank below all that it sees."""
    mrr_inside: float
    mrr_outside: float


class EvaluationReport(Tabular, BaseModel):
    """Metrics under each tie policy; ``head`` and ``tail`` are by the side asked for."""

    model_config = ConfigDict(frozen=True)

    protocol: EvaluationProtocol
    realistic: Metrics
    optimistic: Metrics
    pessimistic: Metrics
    head: MetricsByPolicy
    tail: MetricsByPolicy
    categories: dict[str, dict[str, Any]]
    view: ViewReport | None = None
    """Coverage of the queries' views; None: every query sees the whole graph."""
    link_prediction: dict[str, float] | None
    """AUROC and average precision, for graphs with a single relation."""
    calibration: CalibrationReport | None = None
    """Calibration quality, if the run is calibrated."""
    relation_ranks: dict[str, Any] | None = None
    """Ranks of relations, if they were asked for; see ``relation_ranks.rank_relations``."""
    baselines: BaselineReports | None = None
    """What popularity and two-hop rules score on the same facts; None in older reports."""
    facts: InstanceOf[RankedFacts] | None = Field(default=None, exclude=True, repr=False)
    """The ranks of single facts; not in JSON."""
    seconds: float
    command: str | None
    """What the user typed; None when the report was made from Python."""

    @property
    def mrr(self) -> float:
        """The headline: realistic mean reciprocal rank."""
        return self.realistic["mrr"]

    def by_relation(self) -> RelationMetrics:
        """Returns the metrics of every relation and side.

        Raises:
            KnowformerError: the report was read from JSON, which has no ranks of single facts.
        """
        if self.facts is None:
            raise KnowformerError("Expected a report with its facts, got one read from JSON.")
        return self.facts.by_relation()

    def table(self) -> TableView:
        """Returns the metrics by tie policy, baseline, side and relation category as a table."""
        named = self._by_policy()
        ends = [len(named)]
        for name, report in (self.baselines or {}).items():
            named.append((BASELINES[name], report.realistic))
        ends.append(len(named))
        named += [("head side", self.head["realistic"]), ("tail side", self.tail["realistic"])]
        ends.append(len(named))
        for category, row in self.categories.items():
            count = row["num_facts"]
            sides = [(f"{category} {side} ({count:,})", row[side]) for side in ("head", "tail")]
            named += sides if count else []
        if self.relation_ranks:
            found = self.relation_ranks
            ends.append(len(named))
            named.append((f"relation asked ({found['num_facts']:,})", found["both"]))
            named += [(f"  by {name} alone", found[name]) for name in ("kinds", "model")]
        rows: list[list[Cell]] = [[name, *(m[key] for key in METRIC_NAMES)] for name, m in named]
        columns = [Column("ranks")]
        columns += [
            Column(key.upper(), decimals=DECIMALS.get(key, 3), is_number=True)
            for key in METRIC_NAMES
        ]
        protocol = self.protocol
        sampled = f" of {protocol.sampled_from:,}" if protocol.sampled_from else ""
        title = (
            f"{protocol.dataset}, {protocol.split}: {protocol.num_facts:,}{sampled} facts asked "
            f"both ways, {protocol.num_candidates:,} candidates"
        )
        sections = frozenset(end - 1 for end in ends)
        return TableView(title, columns, rows, self._caption(), sections=sections)

    def _by_policy(self) -> list[tuple[str, Metrics]]:
        """The model's metrics under each tie policy, or once where they look the same."""
        named: list[tuple[str, Metrics]] = [(p, getattr(self, p)) for p in SHOWN_POLICIES]
        looks = {
            tuple(round(metrics[key], DECIMALS.get(key, 3)) for key in METRIC_NAMES)
            for _, metrics in named
        }
        if len(looks) == 1:
            return [("model, however ties count", self.realistic)]
        return [(f"model, {policy}", metrics) for policy, metrics in named]

    def _caption(self) -> str:
        protocol, notes = self.protocol, list[str]()
        if rivals := unbeaten(self.baselines):
            notes.append(f"the model is not clearly better than {rivals}")
        if self.view:
            view = self.view
            notes.append(
                f"a query sees {view.size:,} entities, {view.coverage:.1%} of the answers among "
                f"them (MRR {view.mrr_inside:.3f} inside, {view.mrr_outside:.3f} outside)"
            )
        if self.link_prediction:
            auroc, precision = (self.link_prediction[n] for n in ("auroc", "average_precision"))
            notes.append(f"AUROC {auroc:.3f}, average precision {precision:.3f}")
        if self.calibration:
            notes += self.calibration.headline()
        notes += [protocol.setting, protocol.filter]
        return "\n".join([*notes, f"{protocol.selection}; {self.seconds:.1f} s"])


def view_report(ranks: Ranks, settings: ViewSettings | None) -> ViewReport | None:
    """Returns how well views cover the answers; None if queries see the whole graph."""
    if settings is None:
        return None
    inside = ranks.is_seen
    return ViewReport(
        size=settings.size,
        coverage=inside.double().mean().item(),
        mrr_inside=rank_metrics(ranks[inside].realistic)["mrr"],
        mrr_outside=rank_metrics(ranks[~inside].realistic)["mrr"],
    )


def metrics_by_policy(ranks: Ranks) -> MetricsByPolicy:
    """Returns the metrics of these ranks under each tie policy."""
    return {policy: rank_metrics(ranks.under(policy)) for policy in TIE_POLICIES}
