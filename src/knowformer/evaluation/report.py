"""EvaluationReport: metrics overall, by side and by relation category, headed by the protocol."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from knowformer.calibration.reliability import CalibrationReport
from knowformer.evaluation.metrics import HITS_AT, Metrics, rank_metrics
from knowformer.evaluation.ranks import TIE_POLICIES, Ranks, TiePolicy
from knowformer.tables import Cell, Column, TableView, Tabular
from knowformer.views.settings import ViewSettings

MetricsByPolicy = dict[TiePolicy, Metrics]

METRIC_NAMES = ("mrr", *(f"hits@{k}" for k in HITS_AT), "mr")
SHOWN_POLICIES: tuple[TiePolicy, ...] = ("realistic", "pessimistic", "optimistic")


class EvaluationProtocol(BaseModel):
    """How the metrics were computed; heads every report."""

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
    relations: dict[str, Any] | None = None
    """Ranks of relations, if they were asked for; see ``relation_ranks.rank_relations``."""
    seconds: float
    command: str | None
    """What the user typed; None when the report was made from Python."""

    @property
    def mrr(self) -> float:
        """The headline: realistic mean reciprocal rank."""
        return self.realistic["mrr"]

    def table(self) -> TableView:
        """Returns the metrics by tie policy, side and relation category as a table."""
        named = [(policy, getattr(self, policy)) for policy in SHOWN_POLICIES]
        named += [("head side", self.head["realistic"]), ("tail side", self.tail["realistic"])]
        for category, row in self.categories.items():
            count = row["num_facts"]
            sides = [(f"{category} {side} ({count:,})", row[side]) for side in ("head", "tail")]
            named += sides if count else []
        sections = {2, 4}
        if self.relations:
            sections.add(len(named) - 1)
            named += [(f"relation ({self.relations['num_facts']:,})", self.relations["both"])]
            named += [(f"  by {name} alone", self.relations[name]) for name in ("kinds", "model")]
        rows: list[list[Cell]] = [[name, *(m[key] for key in METRIC_NAMES)] for name, m in named]
        columns = [Column("ranks")]
        columns += [
            Column(key.upper(), decimals=1 if key == "mr" else 3, is_number=True)
            for key in METRIC_NAMES
        ]
        protocol = self.protocol
        title = (
            f"{protocol.dataset}, {protocol.split}: {protocol.num_facts:,} facts asked both ways, "
            f"{protocol.num_candidates:,} candidates"
        )
        return TableView(title, columns, rows, self._caption(), sections=frozenset(sections))

    def _caption(self) -> str:
        protocol, notes = self.protocol, list[str]()
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
            error = self.calibration.expected_calibration_error
            notes.append(
                f"expected calibration error {error.after:.4f} (the model's own probabilities: "
                f"{error.before:.4f})"
            )
        notes += [protocol.setting, protocol.filter, protocol.selection, f"{self.seconds:.1f} s"]
        return "; ".join(notes)


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
